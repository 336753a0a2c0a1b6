import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { runForTest } from "../../../test/run-cli.ts";
import { type ForagerError, InterruptedError, RetrieverError } from "../../errors.ts";
import { failureText } from "../serve/serve-until-stopped.ts";
import { type Started, startServe } from "./serve.fixture.ts";

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "forager-serve-"));
  const record = { id: "it", contents: '"Italy"\nThe capital of Italy is Rome.', note: "kept" };
  await writeFile(join(folder, "corpus.jsonl"), `${JSON.stringify(record)}\n`);
  const built = await runForTest("index", join(folder, "corpus.jsonl"), "--out", join(folder, "my index"));
  expect(built.code).toBe(0);
});
afterAll(() => rm(folder, { recursive: true }));

/** Serves the folder on a free port. */
const start = (env: Record<string, string>, ...argv: readonly string[]): Promise<Started> =>
  startServe(env, "retriever", join(folder, "my index"), "--port", "0", ...argv);

test("says where it listens, answers there, and ends with 0 after SIGTERM", async () => {
  const { ready, end, stop, notes } = await start({}, "-k", "1");
  expect(ready).toMatchObject({
    method: "bm25",
    passages: 1,
    name: "my index",
    url: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/),
  });
  const body = JSON.stringify({ queries: ["capital of Italy"], return_scores: true });
  const response = await fetch(`${ready.url}/retrieve`, { method: "POST", body });
  expect(await response.json()).toEqual({
    result: [
      [
        {
          document: {
            id: "it",
            contents: '"Italy"\nThe capital of Italy is Rome.',
            title: "Italy",
            text: "The capital of Italy is Rome.",
            url: "it",
            note: "kept",
          },
          score: expect.any(Number),
        },
      ],
    ],
  });
  const document = await fetch(`${ready.url}/v1/my%20index/doc/it`);
  expect(document.status).toBe(200);
  stop("SIGTERM");
  expect(await end).toEqual({ json: { url: ready.url, stopped: true } });
  await expect(fetch(ready.url)).rejects.toThrow("fetch failed");
  expect(notes).toEqual([]);
});

test("logs a retriever that fails in one line, and where a bug came from", () => {
  expect(failureText(new RetrieverError("the object store does not answer"))).toBe(
    "the object store does not answer",
  );
  expect(failureText(new TypeError("x is undefined"))).toMatch(/^TypeError: x is undefined\n +at /);
});

test("ends as interrupted after SIGINT", async () => {
  const { end, stop } = await start({});
  stop("SIGINT");
  const error = await end;
  expect(error).toBeInstanceOf(InterruptedError);
  expect((error as ForagerError).code).toBe("interrupted");
});

test("asks for the key of the environment variable and obeys the limits it was given", async () => {
  const { ready, end, stop } = await start({ KEY: "s3cret\n" }, "--api-key-env", "KEY", "--max-queries", "1");
  const ask = async (queries: readonly string[], headers: Record<string, string>): Promise<number> => {
    const body = JSON.stringify({ queries });
    return (await fetch(`${ready.url}/retrieve`, { method: "POST", headers, body })).status;
  };
  expect(await ask(["a"], {})).toBe(401);
  expect(await ask(["a"], { "x-api-key": "s3cret" })).toBe(200);
  expect(await ask(["a", "b"], { "x-api-key": "s3cret" })).toBe(422);
  stop("SIGTERM");
  await end;
});

test("warns when every machine may call without a key", async () => {
  const { ready, notes, end, stop } = await start({}, "--host", "0.0.0.0");
  expect(ready.url).toContain("127.0.0.1");
  expect(notes).toEqual([expect.stringContaining("without a key")]);
  stop("SIGTERM");
  await end;
});

test.each(["NONE", "EMPTY"])("refuses an environment variable %s without a key", async (name) => {
  const started = start({ EMPTY: " " }, "--api-key-env", name);
  await expect(started).rejects.toThrow(`expected the API key in the environment variable ${name}`);
});

test("refuses a port that is none", async () => {
  const run = await runForTest("serve", "retriever", join(folder, "my index"), "--port", "70000");
  expect(run).toMatchObject({ code: 2, stderr: expect.stringContaining("--port must be at most 65535") });
});

test("says what it can serve, and what is wrong with a folder", async () => {
  expect(await runForTest("serve", "agent", folder)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('expected what to serve, retriever or engine, got "agent"'),
  });
  expect(await runForTest("serve", "retriever", join(folder, "none"), "--port", "0")).toMatchObject({
    code: 1,
  });
});
