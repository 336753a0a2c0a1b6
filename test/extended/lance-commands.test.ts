/** LanceDB from the command line; skipped where LanceDB is not installed. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startServe } from "../../src/cli/commands/serve.fixture.ts";
import { writeTinyModel } from "../../src/retrieval/dense/tiny-model.fixture.ts";
import { runForTest } from "../run-cli.ts";

function isInstalled(): boolean {
  try {
    createRequire(import.meta.url).resolve("@lancedb/lancedb");
    return true;
  } catch {
    return false;
  }
}

let folder: string;
const at = (name: string): string => join(folder, name);

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "forager-lance-cli-"));
  const texts = ["red red", "green", "blue blue blue", "red blue"];
  const lines = texts.map((text, i) => `${JSON.stringify({ id: `p${i}`, title: "", text })}\n`);
  await writeFile(at("corpus.jsonl"), lines.join(""));
  await writeTinyModel(at("e5-small-v2"), "encoder");
});
afterAll(() => rm(folder, { recursive: true }));

const name = isInstalled() ? "LanceDB commands" : "LanceDB commands (skipped: LanceDB is not installed)";
describe.skipIf(!isInstalled())(name, () => {
  test("index into a table, which search then knows", async () => {
    const line = ["index", at("corpus.jsonl"), "--out", at("table"), "--lance", "--json"];
    const built = await runForTest(...line, "--dense", at("e5-small-v2"));
    expect(built).toMatchObject({ code: 0, json: { passages: 4, skipped: 0, method: "lance" } });
    expect(await runForTest("search", at("table"), "green", "--json")).toMatchObject({
      code: 0,
      json: { results: [{ id: "p1", text: "green" }] },
    });
    const hybrid = await runForTest(
      "search",
      at("table"),
      "green",
      "--encoder",
      at("e5-small-v2"),
      "-k",
      "4",
      "--json",
    );
    expect((hybrid.json as { results: unknown[] }).results).toHaveLength(4);
    expect((await runForTest(...line)).code).toBe(1);
  });

  test("are served over HTTP; what a table cannot do is said", async () => {
    const { ready, end, stop } = await startServe({}, "retriever", at("table"), "--port", "0");
    expect(ready).toMatchObject({ name: "table", method: "lance-bm25", passages: 4 });
    const ask = (path: string, body: object): Promise<Response> =>
      fetch(`${ready.url}${path}`, { method: "POST", body: JSON.stringify(body) });
    const found = await ask("/retrieve", { queries: ["green", "blue"], topk: 1 });
    expect(await found.json()).toMatchObject({ result: [[{ id: "p1" }], [{ id: "p2" }]] });
    expect((await ask("/access", { urls: ["p1"] })).status).toBe(501);
    stop("SIGTERM");
    expect(await end).toMatchObject({ json: { stopped: true } });
  });

  test("options of index folders are refused", async () => {
    const build = await runForTest(
      "index",
      at("corpus.jsonl"),
      "--out",
      at("x"),
      "--lance",
      "--memory",
      "64",
    );
    expect([build.code, build.stderr.includes("--memory is for index folders")]).toEqual([2, true]);
    for (const set of ["k1=0.9", "fuzzy=false", "variant=bm25+"]) {
      const { code, stderr } = await runForTest(
        "index",
        at("corpus.jsonl"),
        "--out",
        at("x"),
        "--lance",
        "--set",
        set,
      );
      expect([code, stderr]).toEqual([
        2,
        expect.stringMatching(/--set \w+ is for index folders; LanceDB ranks/),
      ]);
    }
    const search = await runForTest("search", at("table"), "green", "--approximate");
    expect([search.code, search.stderr.includes("--approximate is for index folders")]).toEqual([2, true]);
  });

  test("passages that are dropped as duplicates count as skipped", async () => {
    const twice = ["a", "b"].map((id) => `${JSON.stringify({ id, title: "", text: "same" })}\n`);
    await writeFile(at("twice.jsonl"), twice.join(""));
    const line = ["index", at("twice.jsonl"), "--out", at("twice"), "--lance", "--json"];
    expect(await runForTest(...line, "--set", "dropDuplicates=true")).toMatchObject({
      json: { passages: 1, skipped: 1 },
    });
  });
});

test.skipIf(isInstalled())("without LanceDB the command says how to install it", async () => {
  const { code, stderr } = await runForTest("index", at("corpus.jsonl"), "--out", "s3://bucket/x");
  expect(code).toBe(1);
  expect(stderr).toContain("npm install @lancedb/lancedb");
});
