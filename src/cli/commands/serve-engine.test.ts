import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { runForTest } from "../../../test/run-cli.ts";
import { tinyEngine } from "../../engine/engine.fixture.ts";
import { FileError, InterruptedError } from "../../errors.ts";
import { type Started, startServe } from "./serve.fixture.ts";

let folder: string;
let model: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "forager-serve-engine-"));
  model = join(folder, "tiny");
  const engine = await tinyEngine();
  await engine.save(model);
  await engine.close();
});
afterAll(() => rm(folder, { recursive: true }));

const start = (env: Record<string, string>, ...argv: readonly string[]): Promise<Started> =>
  startServe(env, "engine", "--model", model, "--port", "0", "--threads", "1", ...argv);

async function post(url: string, path: string, body: unknown, headers: Record<string, string> = {}) {
  const init = { method: "POST", headers, body: JSON.stringify(body) };
  const response = await fetch(`${url}/api/v1/${path}`, init);
  // biome-ignore lint/suspicious/noExplicitAny: what a server answers
  return { status: response.status, body: (await response.json()) as any };
}

test("serves a folder's model, samples from it, and ends with 0 after SIGTERM; outcomes are there for the next server", async () => {
  const state = join(folder, "state");
  const first = await start({}, "--state", state, "--name", "tiny-model");
  const { url } = first.ready;
  expect(first.ready).toMatchObject({ base_model: "tiny-model", parameters: expect.any(Number), state });
  expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
  const request = {
    base_model: model,
    prompt: { chunks: [{ tokens: [5, 6, 7] }] },
    sampling_params: { max_tokens: 3, seed: 1 },
  };
  const { request_id } = (await post(url, "asample", request)).body;
  const sampled = await post(url, "retrieve_future", { request_id });
  expect(sampled.body.sequences[0].tokens.length).toBeGreaterThan(0);
  const second = await start({}, "--state", state).catch((error: unknown) => error);
  expect(second).toBeInstanceOf(FileError);
  first.stop("SIGTERM");
  expect(await first.end).toEqual({ json: { url, stopped: true } });

  const again = await start({}, "--state", state);
  expect(again.ready.base_model).toBe(model);
  expect((await post(again.ready.url, "retrieve_future", { request_id })).body).toEqual(sampled.body);
  again.stop("SIGINT");
  expect(await again.end).toBeInstanceOf(InterruptedError);
  expect([...first.notes, ...again.notes]).toEqual([]);
});

test("asks for the key of the environment variable", async () => {
  const { ready, end, stop } = await start(
    { KEY: "tml-s3cret" },
    ...["--state", join(folder, "keyed"), "--api-key-env", "KEY"],
  );
  const ask = async (headers: Record<string, string>): Promise<number> =>
    (await post(ready.url, "client/config", { sdk_version: "1" }, headers)).status;
  expect(await ask({})).toBe(401);
  expect(await ask({ "x-api-key": "tml-s3cret" })).toBe(200);
  stop("SIGTERM");
  await end;
});

test.each([
  [["engine"], "expected --model MODEL"],
  [["engine", "an-index", "--model", "m"], 'the base is named by --model, got "an-index"'],
  [["engine", "--model", "m", "-k", "3"], "--k belongs to serve retriever"],
  [["retriever", "an-index", "--snapshots", "3"], "--snapshots belongs to serve engine"],
  [["retriever"], "expected an INDEX"],
  [["engine", "--model", "m", "--cache-memory", "much"], "expected a size such as 4GB"],
  [["model", "x"], "expected what to serve, retriever or engine"],
])("%j is refused", async (argv, words) => {
  const { code, stderr } = await runForTest("serve", ...argv);
  expect([code, stderr]).toEqual([2, expect.stringContaining(words)]);
});
