/**
 * Real data from file to report: a model too small to learn anything is trained in the format of Search-R1 on questions
 * of HotpotQA, 2WikiMultiHopQA and MuSiQue over the real passages, and scored on all seven question files. What counts
 * is that every question is asked, scored and stored. Skipped with a message without `../shared` (see corpus.test.ts).
 */
import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { runForTest, type TestRun } from "../run-cli.ts";

const shared = process.env.FORAGER_SHARED ?? join(import.meta.dirname, "../../../shared");
const data = join(shared, "data");
const isThere = existsSync(join(data, "corpus.jsonl"));
const datasets = ["nq", "triviaqa", "popqa", "hotpotqa", "2wikimultihopqa", "musique", "bamboogle"];
const questionFiles = datasets.map((name) => join(data, `${name}.jsonl`));

const recipe = (index: string): string => `name: real
data:
  type: files
  corpus: ${join(data, "corpus.jsonl")}
  questions: { train: ${join(data, "train.jsonl")}, evaluation: [${questionFiles.join(", ")}] }
retriever: { type: index, path: ${index} }
environment: { codec: search-r1, prompt: bare, k: 3, maxSearches: 2, maxTurnTokens: 8, maxObservationTokens: 64 }
model:
  { type: fresh, layers: 1, width: 16, heads: 2, keyValueHeads: 1, feedForward: 32, contextLength: 512, vocabularySize: 400 }
stages:
  - type: reinforcement
    name: grpo
    steps: 2
    questionsPerStep: 8
    schedule: { learningRate: 0.001 }
    reward: { type: format }
    algorithm: { groupSize: 2, rejectGroupsWithoutSignal: false }
evaluation: { n: 1000 }
`;

describe.skipIf(!isThere)(isThere ? "real data" : `real data (skipped: ${data} is not there)`, () => {
  let folder: string;
  let count = 0;
  const at = (name: string): string => join(folder, name);
  let indexed: TestRun;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "forager-real-"));
    for (const file of questionFiles) count += (await readFile(file, "utf8")).trim().split("\n").length;
    indexed = await runForTest("index", join(data, "corpus.jsonl"), "--out", at("index"), "--json");
    await writeFile(at("real.yaml"), recipe(at("index")));
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));

  test("is indexed and searched from the command line", async () => {
    expect(indexed).toMatchObject({ code: 0, json: { passages: 33_879, method: "bm25" } });
    const { json } = await runForTest("search", at("index"), "Danish chemist pH", "-k", "5", "--json");
    const { results } = json as { results: { id: string; text: string }[] };
    expect(results).toHaveLength(5);
    expect(results.some(({ text }) => text.includes("pH"))).toBe(true);
  });

  test("is trained on, and every held-out question is scored, before and after", async () => {
    const trained = await runForTest("train", at("real.yaml"), "--out", at("run"), "--json");
    expect(trained).toMatchObject({ code: 0, json: { before: { n: count }, after: { n: count } } });
    const rows = (await readFile(at("run/metrics.jsonl"), "utf8")).trim().split("\n");
    expect(rows).toHaveLength(2);
    expect(await readFile(at("run/report.html"), "utf8")).toContain("bamboogle");
  });

  test("is evaluated set by set", async () => {
    const files = questionFiles.flatMap((file) => ["--questions", file]);
    const line = ["eval", at("run"), ...files, "--index", at("index"), "--out", at("scores.json"), "--json"];
    expect(await runForTest(...line)).toMatchObject({ code: 0, json: { n: count } });
    const { summary } = JSON.parse(await readFile(at("scores.json"), "utf8"));
    expect(Object.keys(summary.byDataset).sort()).toEqual([...datasets].sort());
    expect(summary.byDataset.nq.n + summary.byDataset.hotpotqa.n).toBe(240);
  });
});
