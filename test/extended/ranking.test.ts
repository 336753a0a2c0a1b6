/**
 * Retrieval scored end to end on real files beside the repository (`../shared/data`; the variable FORAGER_SHARED names
 * another folder than `../shared`): a BEIR folder in Arabic, judgements with four columns, question files with gold
 * passages. They are not part of the project; without them these tests are skipped.
 */
import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { readQrels } from "../../src/evaluation/ranking/qrels.ts";
import { createRun } from "../../src/evaluation/ranking/run-file.ts";
import { runForTest } from "../run-cli.ts";

const shared = process.env.FORAGER_SHARED ?? join(import.meta.dirname, "../../../shared");
const data = join(shared, "data");
const wild = join(data, "wild");
const isThere = existsSync(join(wild, "arcd_beir"));

let folder: string;
const at = (name: string): string => join(folder, name);
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "forager-ranking-real-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

interface Scored {
  readonly n: number;
  readonly withoutResults: number;
  readonly withoutJudgement: number;
  readonly metrics: Readonly<
    Record<string, { readonly mean: number; readonly ci: readonly [number, number] }>
  >;
}

async function json(...argv: readonly string[]): Promise<unknown> {
  const { code, json: result, stderr } = await runForTest(...argv, "--json");
  expect(stderr).not.toContain("forager:");
  expect(code).toBe(0);
  return result;
}

describe.skipIf(!isThere)(isThere ? "a BEIR folder" : `a BEIR folder (skipped: ${wild} is not there)`, () => {
  const beir = join(wild, "arcd_beir");
  const qrels = join(beir, "qrels", "test.tsv");
  const queries = join(beir, "queries.jsonl");

  test("in Arabic is indexed, searched and scored by commands alone", async () => {
    await json("index", join(beir, "corpus.jsonl"), "--out", at("arabic"));
    const run = await json(
      "search",
      at("arabic"),
      "--queries",
      queries,
      "-k",
      "20",
      "--run",
      at("arabic.trec"),
    );
    expect(run).toMatchObject({ queries: 50 });
    const metrics = ["--metrics", "recall@5,recall@20,mrr@10,ndcg@10"];
    const score = (await json(
      "score",
      at("arabic.trec"),
      "--qrels",
      qrels,
      ...metrics,
      "--only-retrieved",
    )) as Scored;
    expect(score.n + score.withoutResults).toBe(702);
    expect(score.withoutJudgement).toBe(0);
    expect(score.metrics["recall@5"]?.mean).toBeGreaterThan(0.6);
    expect(await naiveRecall(at("arabic.trec"), qrels, 20)).toBeCloseTo(
      score.metrics["recall@20"]?.mean ?? -1,
      12,
    );
    // The folder has 50 of the queries that were judged; the others count 0.
    const all = (await json("score", at("arabic.trec"), "--qrels", qrels, ...metrics)) as Scored;
    expect(all.n).toBe(702);
    expect(all.metrics["mrr@10"]?.mean).toBeCloseTo(
      ((score.metrics["mrr@10"]?.mean ?? 0) * score.n) / 702,
      12,
    );
  });

  test("judgements with four columns and grades are read, and a run in their order is perfect", async () => {
    const path = join(wild, "nfcorpus_sample", "nfcorpus-qrels.tsv");
    const judged = await readQrels(path);
    const grades = [...judged.values()].flatMap((row) => [...row.values()]);
    expect([grades.length, grades.filter((grade) => grade === 2).length]).toEqual([234, 39]);
    const ideal = Array.from(judged, ([query, row]) => {
      const entries = Array.from(row, ([id, score]) => ({ id, score }));
      return [query, entries] as const;
    });
    await createRun(at("ideal.trec"), ideal, "ideal");
    const score = (await json(
      "score",
      at("ideal.trec"),
      "--qrels",
      path,
      "--metrics",
      "ndcg,map,mrr",
    )) as Scored;
    for (const { mean } of Object.values(score.metrics)) expect(mean).toBeCloseTo(1, 12);
  });

  test("questions carry judgements and answers of their own", async () => {
    await json("index", join(data, "corpus.jsonl"), "--out", at("index"));
    const questions = join(data, "hotpotqa.jsonl");
    await json("search", at("index"), "--queries", questions, "--run", at("hotpotqa.trec"));
    const score = (await json(
      "score",
      at("hotpotqa.trec"),
      "--questions",
      questions,
      "--index",
      at("index"),
    )) as Scored;
    // The prototype found 59.9 % of the gold over all seven files; HotpotQA is the easiest of them.
    expect(score.metrics["recall@5"]?.mean).toBeGreaterThan(0.7);
    expect(score.metrics["answer@20"]?.mean).toBeGreaterThan(0.8);
  });
});

/** Recall@k over the queries of a TREC run with one relevant passage each, from the ranks that the run states. */
async function naiveRecall(run: string, qrels: string, k: number): Promise<number> {
  const rows = (await readFile(run, "utf8")).trimEnd().split("\n");
  const gold = new Set(
    (await readFile(qrels, "utf8")).split("\n").map((line) => line.split("\t", 2).join(" ")),
  );
  const found = rows.map((row) => row.split(" ")).filter(([, , , rank]) => Number(rank) <= k);
  const hits = found.filter(([query, , passage]) => gold.has(`${query} ${passage}`)).length;
  return hits / new Set(rows.map((row) => row.split(" ", 1)[0])).size;
}
