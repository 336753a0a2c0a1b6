/** Vectors from the command line: added to an index, searched alone, fused, approximately and reranked. */
import { existsSync } from "node:fs";
import { mkdtemp, readFile, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { runForTest } from "../../../test/run-cli.ts";
import { writeTinyModel } from "../../retrieval/dense/tiny-model.fixture.ts";

let folder: string;
const at = (name: string): string => join(folder, name);
const corpus = ["red red", "green", "blue blue blue", "red blue"].map((text, i) => ({
  id: `p${i}`,
  title: "",
  text,
}));

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "forager-vectors-"));
  await writeFile(at("corpus.jsonl"), corpus.map((record) => `${JSON.stringify(record)}\n`).join(""));
  await writeTinyModel(at("e5-small-v2"), "encoder");
  await writeTinyModel(at("judge"), "cross-encoder");
  const built = await runForTest("index", at("corpus.jsonl"), "--out", at("index"));
  expect(built.code).toBe(0);
});
afterAll(() => rm(folder, { recursive: true }));

interface Found {
  readonly id: string;
}

async function idsOf(...args: string[]): Promise<readonly string[]> {
  const { code, json, stderr } = await runForTest("search", at("index"), ...args, "--json");
  expect([code, stderr]).toEqual([0, ""]);
  return (json as { results: readonly Found[] }).results.map(({ id }) => id);
}

test("are added to an index that exists, with what approximate search misses", async () => {
  const line = ["index", "--out", at("index"), "--dense", at("e5-small-v2"), "--approximate"];
  const built = await runForTest(...line, "--set", "dense.dtype=f32", "--json");
  expect(built).toMatchObject({
    code: 0,
    json: { passages: 4, bytes: expect.any(Number), dense: { dtype: "f32", recall: { value: 1 } } },
  });
  const again = await runForTest(...line);
  expect(again.code).toBe(1);
  expect(again.stderr).toContain("has a graph already");
  const rest = join(at("index"), "dense/plan.json");
  await writeFile(rest, "what a kill right behind the end leaves");
  const vectors = await runForTest(...line.slice(0, -1));
  expect([vectors.code, existsSync(rest)]).toEqual([2, false]);
  expect(vectors.stderr).toContain("has vectors already");
});

test("that exist get a graph without being encoded again", async () => {
  const bare = at("bare");
  await runForTest("index", at("corpus.jsonl"), "--out", bare, "--dense", at("e5-small-v2"));
  const none = await runForTest("search", bare, "green", "--mode", "dense", "--approximate");
  expect(none).toMatchObject({ code: 1, stderr: expect.stringContaining("index --out INDEX --approximate") });
  const before = await readFile(join(bare, "dense/vectors.f16"));
  const coarse = await runForTest("index", "--out", bare, "--approximate", "--set", "dense.dtype=f32");
  expect(coarse).toMatchObject({ code: 2, stderr: expect.stringContaining("--set dense is about vectors") });
  const built = await runForTest("index", "--out", bare, "--approximate", "--json");
  expect(built).toMatchObject({ code: 0, json: { passages: 4, dense: { recall: { value: 1 } } } });
  expect(built.stderr).not.toContain("encoding");
  expect(await readFile(join(bare, "dense/vectors.f16"))).toEqual(before);
  const found = await runForTest("search", bare, "green", "--mode", "dense", "--approximate", "--json");
  expect(found).toMatchObject({ code: 0, json: { results: [{ id: expect.any(String) }, {}, {}] } });
  const again = await runForTest("index", "--out", bare, "--dense", at("e5-small-v2"), "--approximate");
  expect(again).toMatchObject({ code: 1, stderr: expect.stringContaining("has a graph already") });
  const plain = await runForTest("index", at("corpus.jsonl"), "--out", at("plain"));
  expect(plain.code).toBe(0);
  const nothing = await runForTest("index", "--out", at("plain"), "--approximate");
  expect(nothing).toMatchObject({ code: 2, stderr: expect.stringContaining("has no vectors to link") });
});

test("a whole command given again goes on with what is missing, for the same corpus only", async () => {
  const line = ["--out", at("again"), "--dense", at("e5-small-v2"), "--json"];
  expect(await runForTest("index", at("corpus.jsonl"), "--out", at("again"))).toMatchObject({ code: 0 });
  await writeFile(at("other.jsonl"), '{"id":"x","text":"red"}\n');
  const other = await runForTest("index", at("other.jsonl"), ...line);
  expect(other.code).toBe(1);
  expect(other.stderr).toContain("is the index of another corpus");
  expect(await runForTest("index", at("corpus.jsonl"), ...line)).toMatchObject({
    code: 0,
    json: { passages: 4, dense: { dtype: "f16" } },
  });
});

test("a whole command given again counts what it leaves out, and refuses settings that the index was not built with", async () => {
  await writeFile(at("partly.jsonl"), '{"id":"1","text":"red"}\n{"id":"2"}\n');
  const line = ["index", at("partly.jsonl"), "--out", at("partly"), "--set", "b=0.5"];
  expect(await runForTest(...line)).toMatchObject({ code: 0 });
  const more = [...line, "--dense", at("e5-small-v2"), "--json"];
  const other = await runForTest(...more, "--set", "k1=2");
  expect(other).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("was built with k1=1.2; leave out --set k1"),
  });
  const again = await runForTest(...more);
  expect(again).toMatchObject({ code: 0, json: { passages: 1, skipped: 1 } });
  expect(again.stderr).toContain("partly.jsonl:2: expected");
});

test("a whole command given again goes on with the options that the index has, whichever they are", async () => {
  const line = [
    "index",
    at("corpus.jsonl"),
    "--out",
    at("set"),
    "--set",
    "folding=marks",
    "--set",
    "fuzzy.n=4",
  ];
  expect(await runForTest(...line)).toMatchObject({ code: 0 });
  const more = [...line, "--dense", at("e5-small-v2"), "--json"];
  const other = await runForTest(...more, "--set", "fuzzy.n=3");
  expect(other).toMatchObject({ code: 1, stderr: expect.stringMatching(/built with fuzzy=\{.*"n":4/) });
  const folded = await runForTest(...more, "--set", "folding=letters");
  expect(folded).toMatchObject({ code: 1, stderr: expect.stringContaining("built with folding=marks") });
  expect(await runForTest(...more)).toMatchObject({ code: 0, json: { passages: 4 } });
});

test("whose encoder is missing are refused before the corpus is read", async () => {
  const { code, stderr } = await runForTest(
    "index",
    at("corpus.jsonl"),
    "--out",
    at("early"),
    "--dense",
    at("nowhere"),
  );
  expect(code).toBe(1);
  expect(stderr).toMatch(/^forager: there is no model folder .*nowhere/);
  expect(existsSync(at("early"))).toBe(false);
});

test("are fused with the option that the help of search names", async () => {
  expect(await idsOf("green", "--set", "fusion.k=30")).toContain("p1");
  const weights = ["--set", "fusion.weights.bm25=0.4", "--set", "fusion.weights.dense=0.6"];
  expect(await idsOf("green", ...weights)).toContain("p1");
});

test("are searched alone where a recipe of an earlier run records the former default of fusion", async () => {
  for (const mode of ["bm25", "dense"])
    expect(await idsOf("green", "--mode", mode, "--set", "fusion.k=60")).toContain("p1");
});

test.each([
  [["index", "corpus.jsonl", "--out", "x", "--approximate"], "--approximate is about vectors"],
  [
    ["index", "corpus.jsonl", "--out", "x", "--set", "encoder.pooling=mean"],
    "--set encoder is about vectors",
  ],
  [
    ["index", "--out", "index", "--dense", "e5-small-v2", "--set", "k1=2"],
    "--set k1 is about reading a corpus",
  ],
  [["index", "--out", "index", "--dense", "e5-small-v2", "--strict"], "--strict is about reading a corpus"],
  [["search", "index", "red", "--mode", "bm25", "--approximate"], "approximate is about vectors"],
  [["search", "index", "red", "--mode", "bm25", "--set", "fusion.k=9"], "fusion is about hybrid search"],
  [["search", "index", "red", "--mode", "dense", "--set", "depth=9"], "depth is about hybrid search"],
  [["search", "index", "red", "--set", "expansionSearch=9"], "expansionSearch is about the graph"],
])("%j is refused, not ignored", async (line, message) => {
  const files = ["corpus.jsonl", "index", "e5-small-v2", "x"];
  const [command, ...rest] = line.map((word, i) => (i > 0 && files.includes(word) ? at(word) : word));
  const { code, stderr } = await runForTest(command as string, ...rest);
  expect(code).toBe(2);
  expect(stderr).toContain(message);
});

test("are used by default, fused with words; bm25 alone stays at hand", async () => {
  const { json } = await runForTest("search", at("index"), "green", "--explain", "--json");
  expect((json as { stages: { name: string }[] }).stages.map(({ name }) => name)).toEqual([
    "bm25",
    "dense",
    "fusion",
  ]);
  expect(await idsOf("green", "--mode", "bm25")).toEqual(["p1"]);
  expect(await idsOf("green", "--mode", "dense", "-k", "4")).toHaveLength(4);
  // The graph keeps bf16 numbers, in which near vectors may change places.
  const near = await idsOf("green", "--mode", "dense", "--approximate", "-k", "4");
  expect(near.toSorted()).toEqual(["p0", "p1", "p2", "p3"]);
});

test("a cross-encoder has the last word", async () => {
  // It scores the sum of the ids of a passage's words: blue three times is the most.
  expect(await idsOf("red", "--rerank", at("judge"), "-k", "4")).toEqual(["p2", "p3", "p0", "p1"]);
});

test("the encoder may have moved, and another one is refused", async () => {
  await rename(at("e5-small-v2"), at("moved"));
  const lost = await runForTest("search", at("index"), "green", "--mode", "dense");
  expect(lost.code).toBe(1);
  expect(lost.stderr).toContain("e5-small-v2");
  await rename(at("moved"), at("e5-small-v2"));
  await writeTinyModel(at("bge-small-en-v1.5"), "encoder", { id: 8, value: 3 });
  const other = await runForTest("search", at("index"), "green", "--encoder", at("bge-small-en-v1.5"));
  expect(other.code).toBe(1);
  expect(other.stderr).toMatch(/^forager: .*encoder/);
});

test("a recipe uses them", async () => {
  const question = { id: "q", question: "which is green?", golden_answers: ["green"], supporting: ["p1"] };
  await writeFile(at("train.jsonl"), `${JSON.stringify({ ...question, question: "red?" })}\n`);
  await writeFile(at("test.jsonl"), `${JSON.stringify(question)}\n`);
  const recipe = `name: vectors
data: { type: files, questions: { train: train.jsonl, evaluation: test.jsonl } }
retriever: { type: index, path: index, mode: dense }
recordRetrieval: calls.jsonl
environment: { codec: compact, prompt: bare, passageTemplate: text, k: 1, maxSearches: 1, maxTurnTokens: 8, maxObservationTokens: 24 }
model: { type: fresh, layers: 1, width: 16, heads: 2, keyValueHeads: 2, feedForward: 32, contextLength: 128, vocabularySize: 300 }
stages:
  - { type: reinforcement, name: grpo, steps: 1, questionsPerStep: 1, schedule: { learningRate: 0.001 }, algorithm: { groupSize: 2 } }
`;
  await writeFile(at("recipe.yaml"), recipe);
  const trained = await runForTest("train", at("recipe.yaml"), "--out", at("run"), "--json");
  expect(trained).toMatchObject({ code: 0, json: { after: { n: 1 } } });
  const contract = JSON.parse(await readFile(at("run/contract.json"), "utf8")) as {
    retriever: { method: string };
  };
  expect(contract.retriever.method).toBe("dense");
  // What the agent was told is on disk: the same training needs no encoder and no index any more.
  const replay = `retriever={type: replay, file: ${at("calls.jsonl")}}`;
  const corpusOnly = `data.corpus=${at("corpus.jsonl")}`;
  const line = ["train", at("recipe.yaml"), "--out", at("offline"), "--json"];
  const offline = await runForTest(
    ...line,
    "--set",
    replay,
    "--set",
    corpusOnly,
    "--set",
    `recordRetrieval=${at("again.jsonl")}`,
  );
  expect(offline).toMatchObject({ code: 0, json: { after: { n: 1 } } });
});

test("a recipe reads a corpus as leniently, and as finely, as the index did", async () => {
  await writeFile(at("wild.jsonl"), `{oops\n${await readFile(at("corpus.jsonl"), "utf8")}`);
  const cut = ["--set", "chunk.by=words", "--set", "chunk.size=2"];
  expect(await runForTest("index", at("wild.jsonl"), "--out", at("fine"), ...cut)).toMatchObject({ code: 0 });
  const fine = `retriever={type: index, path: ${at("fine")}, mode: bm25}`;
  const line = [
    "doctor",
    at("recipe.yaml"),
    "--json",
    "--set",
    fine,
    "--set",
    `data.corpus=${at("wild.jsonl")}`,
  ];
  const recorded = await readFile(at("calls.jsonl"), "utf8");
  const strict = await runForTest(...line);
  expect(JSON.stringify(strict.json)).toContain("wild.jsonl:1: expected one JSON object");
  const reading = "data.reading={strict: false, chunk: {by: words, size: 2}}";
  const lenient = await runForTest(...line, "--set", reading);
  expect(lenient.stderr).toContain("1 bad line");
  const { checks } = lenient.json as { checks: { name: string; ok: boolean }[] };
  expect(checks.find(({ name }) => name === "data")).toMatchObject({ ok: true });
  // A doctor's questions are not part of anybody's recording.
  expect(await readFile(at("calls.jsonl"), "utf8")).toBe(recorded);
});

test("what was cut from documents is recorded and replayed with its place", async () => {
  await writeFile(at("page.md"), "# Colours\n\nred and green and blue");
  expect(await runForTest("index", at("page.md"), "--out", at("pages"))).toMatchObject({ code: 0 });
  for (const query of ["red", "green"])
    expect(await runForTest("search", at("pages"), query, "--record", at("pages.jsonl"))).toMatchObject({
      code: 0,
    });
  expect(await readFile(at("pages.jsonl"), "utf8")).toContain('"source":{"document":"page.md"');
});

test("an empty query finds nothing, and one too long for a command line is refused", async () => {
  expect(await idsOf("", "--mode", "dense")).toEqual([]);
  expect(await idsOf(" ")).toEqual([]);
  const { code, stderr } = await runForTest("search", at("index"), "green ".repeat(5000));
  expect(code).toBe(2);
  expect(stderr).toContain("put it in a file with --queries");
  expect(await idsOf("green ".repeat(5000), "--mode", "bm25")).toEqual(["p1"]);
});
