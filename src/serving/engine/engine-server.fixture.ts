/** For tests: a server of models without a socket, on a folder of its own, and calls to it as clients make them. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import type { Backend } from "./backend.ts";
import { createEngineApp } from "./engine-app.ts";
import { type EngineLimits, engineLimitsWith } from "./engine-limits.ts";
import { EngineService } from "./engine-service.ts";
import { type FreeBackend, freeBackend } from "./free-backend.fixture.ts";

export interface Reply {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: what a server answers is what the test is about
  readonly body: any;
  readonly headers: Headers;
}

export interface TestServer<B extends Backend = FreeBackend> {
  readonly backend: B;
  readonly service: EngineService;
  readonly folder: string;
  readonly failures: unknown[];
  /** Milliseconds that pass for the server. */
  clock: number;
  post(path: string, body: unknown, headers?: Record<string, string>): Promise<Reply>;
  get(path: string, method?: string, headers?: Record<string, string>): Promise<Reply>;
  /** Posts, and polls until the outcome is there. */
  done(path: string, body: unknown, headers?: Record<string, string>): Promise<Reply["body"]>;
  /** Another server on the same folder, as after a kill. */
  restarted(): Promise<TestServer<B>>;
}

export interface TestSetting<B extends Backend> {
  readonly backend?: B;
  readonly folder?: string;
  readonly limits?: Partial<EngineLimits>;
  readonly apiKey?: string;
  readonly stopping?: AbortSignal;
}

let ids = 0;

export async function testServer<B extends Backend = FreeBackend>(
  setting: TestSetting<B> = {},
): Promise<TestServer<B>> {
  const backend = (setting.backend ?? freeBackend()) as B;
  const folder = setting.folder ?? (await temporaryFolder());
  const failures: unknown[] = [];
  const service = await EngineService.open({
    backend,
    names: ["base"],
    folder,
    limits: engineLimitsWith({ holdMs: 2_000, ...setting.limits }),
    now: () => server.clock,
    date: () => new Date(server.clock),
    newId: () => String(++ids).padStart(8, "0"),
    newSeed: () => 7,
    onFailure: (error) => failures.push(error),
    ...(setting.stopping && { stopping: setting.stopping }),
  });
  onTestFinished(() => service.close());
  const app = createEngineApp(service, setting.apiKey === undefined ? {} : { apiKey: setting.apiKey });
  const ask = async (path: string, init: RequestInit): Promise<Reply> => {
    const response = await app.request(`http://here/api/v1/${path}`, init);
    const text = await response.text();
    const isJson = response.headers.get("content-type")?.includes("json") && text !== "";
    return {
      status: response.status,
      headers: response.headers,
      body: isJson ? JSON.parse(text) : text || null,
    };
  };
  const server: TestServer<B> = {
    backend,
    service,
    folder,
    failures,
    clock: 0,
    post: (path, body, headers = {}) =>
      ask(path, { method: "POST", body: typeof body === "string" ? body : JSON.stringify(body), headers }),
    get: (path, method = "GET", headers = {}) => ask(path, { method, headers }),
    done: async (path, body, headers) => {
      const promised = await server.post(path, body, headers);
      if (promised.status !== 200)
        throw new Error(`${path} ${promised.status}: ${JSON.stringify(promised.body)}`);
      return await outcome(server, promised.body.request_id);
    },
    restarted: () => testServer({ ...setting, backend, folder }),
  };
  return server;
}

/** Polls until a future is done. */
export async function outcome(server: Pick<TestServer, "post">, request_id: string): Promise<Reply["body"]> {
  for (;;) {
    const { status, body } = await server.post("retrieve_future", { request_id });
    if (status !== 200) throw new Error(`future ${request_id} ${status}: ${JSON.stringify(body)}`);
    if (body.type !== "try_again") return body;
  }
}

async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "forager-engine-server-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

/** A session with a model; the model's id. */
export async function withModel(
  server: Pick<TestServer, "post" | "done">,
  { rank = 2, number = 0 }: { readonly rank?: number; readonly number?: number } = {},
): Promise<{ session_id: string; model_id: string }> {
  const { body } = await server.post("create_session", { tags: [], user_metadata: null, sdk_version: "1" });
  const { session_id } = body;
  const { model_id } = await server.done("create_model", {
    session_id,
    model_seq_id: number,
    base_model: "base",
    lora_config: { rank, seed: 1 },
  });
  return { session_id, model_id };
}

/** A datum of cross-entropy over `tokens`, and of the other losses with `more`. */
export function wireDatum(tokens: readonly number[], more: Record<string, readonly number[]> = {}): object {
  const targets = tokens.slice(1);
  const tensor = (data: readonly number[]): object => ({ data, dtype: "float32", shape: [data.length] });
  return {
    model_input: { chunks: [{ type: "encoded_text", tokens: tokens.slice(0, -1) }] },
    loss_fn_inputs: {
      target_tokens: { data: targets, dtype: "int64", shape: [targets.length] },
      ...Object.fromEntries(Object.entries(more).map(([name, data]) => [name, tensor(data)])),
    },
  };
}

export function crossEntropy(model_id: string, seq_id: number, ...data: object[]): object {
  return { model_id, seq_id, forward_backward_input: { data, loss_fn: "cross_entropy" } };
}
