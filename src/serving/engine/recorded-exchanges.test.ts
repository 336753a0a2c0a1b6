/**
 * Requests that clients sent to a real SkyRL server, sent to ours: the answers have the same status and the same form but
 * for the differences listed here, each with its reason. `test/golden/tinker/make_exchanges.py` made the recordings small.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { type Reply, type TestServer, testServer } from "./engine-server.fixture.ts";
import { freeBackend } from "./free-backend.fixture.ts";

interface Exchange {
  readonly method: string;
  readonly path: string;
  readonly body: unknown;
  readonly status: number;
  readonly answer: unknown;
}

const golden = join(import.meta.dirname, "../../../test/golden/tinker/exchanges.json");
const { exchanges } = JSON.parse(readFileSync(golden, "utf8")) as { exchanges: readonly Exchange[] };

/** Where ours differs, by reason. */
const differences: Readonly<Record<string, readonly string[]>> = {
  "we can delete and list checkpoints, SkyRL 0.3.0 cannot": [
    'DELETE training_runs/ID/checkpoints/sampler_weights/final: 204 for 404 {"detail":"Not Found"}',
    'GET checkpoints: 200 for 404 {"detail":"Not Found"}',
  ],
  "hosted Tinker tells these as well": [
    "GET get_server_capabilities 200: supported_models.0.max_context_length is ours",
    "GET training_runs/ID/checkpoints 200: checkpoints.0.public is ours",
    "GET training_runs/ID/checkpoints 200: checkpoints.0.size_bytes is ours",
    "POST get_info 200: is_lora is ours",
    "POST get_info 200: lora_rank is ours",
    "POST get_info 200: model_data.tokenizer_id is ours",
    "POST get_info 200: model_name is ours",
    "POST get_info 200: type is ours",
    "POST retrieve_future 200: topk_prompt_logprobs is ours",
    "POST retrieve_future 200: type is ours",
    "POST weights_info 200: train_attn is ours",
    "POST weights_info 200: train_mlp is ours",
    "POST weights_info 200: train_unembed is ours",
    "POST retrieve_future 200: metrics.loss:sum is ours",
  ],
  "SkyRL forgets what it was told": [
    'POST get_info 200: model_data.lora_config.seed is "number" for "nothing"',
    'GET training_runs 200: training_runs.0.last_checkpoint is {"checkpoint_id":"string","checkpoint_type":"string","time":"string"," for "nothing"',
    'GET training_runs 200: training_runs.0.last_sampler_checkpoint is {"checkpoint_id":"string","checkpoint_type":"string","time":"string"," for "nothing"',
    'GET training_runs 200: training_runs.0.user_metadata is {"run":"string"} for "nothing"',
    'GET training_runs/ID 200: last_checkpoint is {"checkpoint_id":"string","checkpoint_type":"string","time":"string"," for "nothing"',
    'GET training_runs/ID 200: last_sampler_checkpoint is {"checkpoint_id":"string","checkpoint_type":"string","time":"string"," for "nothing"',
    'GET training_runs/ID 200: user_metadata is {"run":"string"} for "nothing"',
  ],
  "nameless weights have no path here": ['GET samplers/ID 200: model_path is "nothing" for "string"'],
  "the names are not SkyRL's": [
    "POST retrieve_future 200: metrics.grad_norm is ours",
    "POST retrieve_future 200: metrics.learning_rate is ours",
    "POST retrieve_future 200: metrics.skyrl.ai/grad_norm is missing",
    "POST retrieve_future 200: metrics.skyrl.ai/learning_rate is missing",
  ],
  "no context of the library that checks bodies": [
    "POST asample 422: detail.0.ctx is missing",
    "POST forward_backward 422: detail.0.ctx is missing",
    "POST save_weights 422: detail.0.ctx is missing",
  ],
  "one bare stop text is taken, as by hosted Tinker": [
    'POST asample: 200 for 422 {"detail":[{"type":"list_type","loc":["body","sampling_params"],"msg":',
  ],
  "nothing is being written in this replay": [
    'POST asample: 404 for 425 {"detail":"Checkpoint is still being created"}',
  ],
  "a wrong field is 422 as all others": [
    'POST asample: 422 for 400 {"detail":"max_tokens is currently required"}',
    'POST asample: 422 for 400 {"detail":"max_tokens must be a positive number"}',
  ],
  "refused at once and not only when its turn has come": [
    'POST forward_backward: 400 for 200 {"future_id":"37","status":"pending","request_id":"37"}',
    'POST forward_backward: 400 for 200 {"future_id":"51","status":"pending","request_id":"51"}',
    'POST forward_backward: 404 for 200 {"future_id":"49","status":"pending","request_id":"49"}',
    'POST forward_backward: 422 for 200 {"future_id":"46","status":"pending","request_id":"46"}',
  ],
  "what can never succeed is no failure of the server": [
    'POST forward_backward: 422 for 500 "Internal Server Error"',
    'POST retrieve_future: 200 for 500 "Internal Server Error"',
  ],
  "a body that is no JSON is 400, as on our other servers": [
    'POST forward_backward: 400 for 422 {"detail":[{"type":"json_invalid","loc":["body",1],"msg":"JSON decode ',
  ],
  "we have dro, and miss its beta": [
    'POST forward_backward: 400 for 422 {"detail":[{"type":"literal_error","loc":["body","forward_backward_inp',
  ],
  "a future that failed says so with 200, as hosted: the client asks again after 400": [
    'POST retrieve_future: 200 for 400 {"detail":"LoRA rank 0 must be between 1 and 8"}',
    'POST retrieve_future: 200 for 400 {"detail":"LoRA rank 64 must be between 1 and 8"}',
    'POST retrieve_future: 200 for 400 {"detail":"Maximum number of LoRA adapters (4) reached"}',
  ],
  "the client sends again for five minutes after 409": [
    "POST save_weights: 400 for 409 {\"detail\":\"Checkpoint 'step-1' already exists for model 'model_0000000",
  ],
};

test("answers have the form of SkyRL's, but for the differences listed here", async () => {
  const server = await testServer({ backend: freeBackend({ vocabularySize: 1024 }) });
  const found = new Set<string>();
  /** Recorded ids to ours. */
  const ids = new Map<string, string>([["session_00000001", await newSession(server)]]);
  for (const exchange of exchanges) {
    const { method, path, status, answer } = exchange;
    if (path === "create_session") continue;
    const translated = translate(exchange, ids);
    if (translated === undefined) continue;
    const ours = await send(server, translated);
    const call = `${method} ${path.replace(/\?.*/, "").replace(/(model|sampling)_[0-9a-f]{8}/, "ID")}`;
    if (ours.status !== status) found.add(`${call}: ${ours.status} for ${status} ${words(answer)}`);
    else
      for (const text of compare(shapeOf(answer), shapeOf(ours.body)))
        found.add(`${call} ${status}: ${text}`);
    learn(answer, ours.body, ids);
  }
  expect([...found].sort()).toEqual(Object.values(differences).flat().sort());
  expect(server.failures).toEqual([]);
});

async function newSession(server: TestServer): Promise<string> {
  return (await server.post("create_session", { tags: [], user_metadata: {}, sdk_version: "0.24.1" })).body
    .session_id;
}

/** The same request with our ids; undefined for the poll of a request that ours refused at once. */
function translate(exchange: Exchange, ids: ReadonlyMap<string, string>): Exchange | undefined {
  const text = JSON.stringify(exchange).replace(
    /tinker:[\w/-]+|(?:session|model|sampling)_[0-9a-f]{8}/g,
    (id) => ids.get(id) ?? id.replace(/model_[0-9a-f]{8}/, (model) => ids.get(model) ?? model),
  );
  const translated = JSON.parse(text) as Exchange;
  const { request_id } = (exchange.body ?? {}) as { request_id?: unknown };
  if (exchange.path !== "retrieve_future" || typeof request_id !== "string" || exchange.status === 404)
    return translated;
  const ours = ids.get(request_id);
  return ours === undefined
    ? undefined
    : { ...translated, body: { request_id: ours, allow_metadata_only: true } };
}

async function send(server: TestServer, { method, path, body }: Exchange): Promise<Reply> {
  if (method !== "POST") return await server.get(path, method);
  for (;;) {
    const reply = await server.post(path, body);
    if (reply.body.type !== "try_again") return reply;
  }
}

/** Notes which of our ids stands for which recorded one. */
function learn(theirs: unknown, ours: unknown, ids: Map<string, string>): void {
  if (typeof theirs !== "object" || typeof ours !== "object" || theirs === null || ours === null) return;
  for (const [key, value] of Object.entries(theirs)) {
    const own = (ours as Record<string, unknown>)[key];
    if (
      typeof value === "string" &&
      typeof own === "string" &&
      /^(session|model|sampling)_|^tinker:|^\d+$/.test(value)
    )
      ids.set(value, own);
    else learn(value, own, ids);
  }
}

type Shape = string | readonly Shape[] | { readonly [key: string]: Shape };

function shapeOf(value: unknown): Shape {
  if (Array.isArray(value)) return value.length === 0 ? [] : [shapeOf(value.find((entry) => entry !== null))];
  if (typeof value !== "object" || value === null)
    return value === null || value === undefined ? "nothing" : typeof value;
  return Object.fromEntries(Object.entries(value).map(([key, entry]) => [key, shapeOf(entry)]));
}

function* compare(theirs: Shape, ours: Shape, at = ""): Generator<string> {
  if (JSON.stringify(theirs) === JSON.stringify(ours)) return;
  if (
    typeof theirs !== "object" ||
    typeof ours !== "object" ||
    Array.isArray(theirs) !== Array.isArray(ours)
  ) {
    yield `${at || "answer"} is ${words(ours)} for ${words(theirs)}`;
    return;
  }
  const [left, right] = [theirs, ours] as [Record<string, Shape>, Record<string, Shape>];
  for (const key of new Set([...Object.keys(left), ...Object.keys(right)])) {
    const path = at === "" ? key : `${at}.${key}`;
    if (!(key in left)) yield `${path} is ours`;
    else if (!(key in right)) yield `${path} is missing`;
    else yield* compare(left[key] as Shape, right[key] as Shape, path);
  }
}

function words(value: unknown): string {
  return (JSON.stringify(value) ?? "nothing").slice(0, 70);
}
