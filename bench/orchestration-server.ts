/**
 * The server of `npm run bench -- orchestration`, in a process of its own: the Tinker protocol as `forager serve engine`
 * speaks it, over models that compute nothing. A sampled turn is a search or an answer by the seed, spelt in bytes. Counts
 * what it was asked to train on, so that anything trained twice shows, and fails calls on request in every way that a
 * server or a network does. Answers one JSON line to each JSON line (`worker.ts`).
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import type { Datum } from "../src/algorithm/datum.ts";
import type { Backend, Sampler, TrainedModel } from "../src/serving/engine/backend.ts";
import { createEngineApp } from "../src/serving/engine/engine-app.ts";
import { engineLimitsWith } from "../src/serving/engine/engine-limits.ts";
import { EngineService } from "../src/serving/engine/engine-service.ts";
import { type RunningServer, startServer } from "../src/serving/start-server.ts";
import { sha256 } from "../src/shared/hash.ts";
import { random } from "../src/shared/random.ts";
import { byteTokenizer } from "./orchestration-tokenizer.ts";

/** Ways in which a call fails; the last three leave the caller without knowing whether it was carried out. */
export const faultKinds = [
  "status 408",
  "status 425",
  "status 429",
  "status 500",
  "status 502",
  "status 503",
  "slow",
  "cut before",
  "truncated",
  "no number",
  "cut after",
] as const;
type FaultKind = (typeof faultKinds)[number];

const seen = {
  data: 0,
  duplicates: 0,
  samples: 0,
  steps: 0,
  faults: Object.fromEntries(faultKinds.map((kind) => [kind, 0])) as Record<FaultKind, number>,
};
const trained = new Set<string>();
let isCounting = false;

function note(batch: readonly Datum[]): void {
  if (!isCounting) return;
  for (const { inputs, targets } of batch) {
    const hash = sha256(`${inputs.join()}|${targets.at(-1)}`);
    seen.data++;
    if (trained.has(hash)) seen.duplicates++;
    trained.add(hash);
  }
}

const logprob = -1;
const tokenizer = byteTokenizer();
const rowsOf = (batch: readonly Datum[]): Float32Array[] =>
  batch.map(({ targets }) => new Float32Array(targets.length).fill(logprob));

const sampler: Sampler = {
  sample: async (_, { seeds, maxTokens }) => {
    seen.samples += seeds.length;
    return seeds.map((seed) => {
      const yes = seed % 8 < 4 ? "yes" : "no";
      const text = `<think>${seed}</think>${seed % 4 === 0 ? `<answer>${yes}</answer>` : "<search>a fact</search>"}`;
      const tokens = tokenizer.encode(text).slice(0, maxTokens);
      return { tokens, logprobs: tokens.map(() => logprob), reason: "stop" };
    });
  },
  promptLogprobs: async (prompt) => new Float32Array(prompt.length - 1).fill(logprob),
  topPromptLogprobs: async (prompt) => prompt.slice(1).map(() => []),
  save: async () => undefined,
  rest: async () => undefined,
  close: async () => undefined,
};

const model: TrainedModel = {
  logprobs: async (batch) => rowsOf(batch),
  forwardBackward: async (batch) => {
    note(batch);
    return { loss: 0, logprobs: rowsOf(batch) };
  },
  step: async () => {
    seen.steps++;
    return { gradientNorm: 1 };
  },
  snapshot: async () => sampler,
  save: async () => undefined,
  load: async () => undefined,
  close: async () => undefined,
};

const backend: Backend = {
  vocabularySize: tokenizer.vocabularySize,
  contextLength: 16_384,
  parameterCount: 1,
  base: sampler,
  create: async () => model,
  open: async () => sampler,
  close: async () => undefined,
};

type Handler = (request: Request) => Response | Promise<Response>;

/** Fails every `every`-th call that may fail, in turn with each kind, until `left` faults were injected. */
class Faults {
  #left = 0;
  #every = 1;
  #calls = 0;
  #next = 0;
  readonly #draw = random(11, "faults");

  start(count: number, every: number): void {
    this.#left = count;
    this.#every = every;
  }

  get left(): number {
    return this.#left;
  }

  wrap(handle: Handler): Handler {
    return async (request) => {
      const path = new URL(request.url).pathname.replace("/api/v1/", "");
      const mayFail = /^(asample|retrieve_future|forward_backward|optim_step|save_weights_for_sampler)$/.test(
        path,
      );
      if (this.#left === 0 || !mayFail || ++this.#calls % this.#every !== 0) return await handle(request);
      this.#left--;
      const kind = faultKinds[this.#next++ % faultKinds.length] as FaultKind;
      seen.faults[kind]++;
      return await this.#fail(kind, request, handle);
    };
  }

  async #fail(kind: FaultKind, request: Request, handle: Handler): Promise<Response> {
    if (kind.startsWith("status")) {
      await request.arrayBuffer();
      return Response.json({ detail: "injected" }, { status: Number(kind.slice(-3)) });
    }
    if (kind === "cut before") return broken("");
    const answer = await handle(request);
    const text = await answer.text();
    if (kind === "slow") {
      await sleep(500 + this.#draw.below(1500));
      return new Response(text, { status: answer.status, headers: { "content-type": "application/json" } });
    }
    if (kind === "no number")
      return new Response('{"logprobs": [NaN', { headers: { "content-type": "application/json" } });
    return kind === "cut after" ? broken("") : broken(text.slice(0, Math.ceil(text.length / 2)));
  }
}

/** A reply whose connection breaks after `text`. */
function broken(text: string): Response {
  const body = new ReadableStream<Uint8Array>({
    start: (controller) => {
      if (text !== "") controller.enqueue(Buffer.from(text));
      setTimeout(() => controller.error(new Error("injected")), 1);
    },
  });
  return new Response(body, { headers: { "content-type": "application/json" } });
}

let ids = 0;
const faults = new Faults();
let server: RunningServer | undefined;
let service: EngineService | undefined;
let folder = "";

async function start(): Promise<object> {
  folder = await mkdtemp(join(tmpdir(), "forager-orchestration-"));
  service = await EngineService.open({
    backend,
    names: ["null"],
    folder,
    limits: engineLimitsWith({}),
    now: () => performance.now(),
    date: () => new Date(),
    newId: () => (++ids).toString(16).padStart(8, "0"),
    newSeed: () => 7,
    onFailure: (error) => process.stderr.write(`${String(error)}\n`),
  });
  const app = createEngineApp(service);
  server = await startServer(
    faults.wrap((request) => app.fetch(request)),
    { host: "127.0.0.1", port: 0 },
  );
  return { url: server.url };
}

async function answer(line: string): Promise<object> {
  const { op, count = 0, every = 1 } = JSON.parse(line) as { op: string; count?: number; every?: number };
  if (op === "start") return await start();
  if (op === "count") isCounting = true;
  if (op === "faults") faults.start(count, every);
  if (op === "close") {
    await server?.close();
    await service?.close();
    await rm(folder, { recursive: true, force: true });
  }
  const processorSeconds = process.cpuUsage().user / 1e6 + process.cpuUsage().system / 1e6;
  return { ...seen, faultsLeft: faults.left, rss: process.memoryUsage.rss(), processorSeconds };
}

for await (const line of createInterface({ input: process.stdin })) {
  const reply = await answer(line).then(
    (result) => ({ ok: true, ...result }),
    (error: unknown) => ({ ok: false, error: error instanceof Error ? error.message : String(error) }),
  );
  process.stdout.write(`${JSON.stringify(reply)}\n`);
}
