import { describe, expect, test } from "vitest";
import { UsageError } from "../../errors.ts";
import { holm } from "../holm.ts";
import { compareScores } from "./compare-runs.ts";
import type { Qrels, Run } from "./ranking.ts";
import { scoreRun } from "./score-run.ts";

const qrelsOf = (table: Readonly<Record<string, Readonly<Record<string, number>>>>): Qrels =>
  new Map(Object.entries(table).map(([query, row]) => [query, new Map(Object.entries(row))]));
/** Each query's passages, best first. */
const runOf = (table: Readonly<Record<string, readonly string[]>>): Run =>
  new Map(Object.entries(table).map(([query, ids]) => [query, ids.map((id, i) => ({ id, score: -i }))]));

const qrels = qrelsOf({ q1: { a: 1, b: 1 }, q2: { c: 1 }, q3: { a: 0 }, q4: { d: 2 } });
const options = { metrics: ["recall@1", "mrr"], seed: 1 };

describe("a scored run", () => {
  test("has every query and the means over all queries of the qrels", () => {
    const score = scoreRun(
      runOf({ q1: ["a", "x"], q2: ["x", "c"], q3: ["a"], other: ["a"] }),
      qrels,
      options,
    );
    expect(score.queries).toEqual([
      { id: "q1", values: { "recall@1": 0.5, mrr: 1 } },
      { id: "q2", values: { "recall@1": 0, mrr: 0.5 } },
      { id: "q3", values: { "recall@1": 0, mrr: 0 } },
      { id: "q4", values: { "recall@1": 0, mrr: 0 } },
    ]);
    expect(score.means.mrr).toMatchObject({ n: 4, mean: 0.375 });
    const [low, high] = score.means.mrr?.ci ?? [1, 0];
    expect(low).toBeLessThan(0.375);
    expect(high).toBeGreaterThan(0.375);
    expect(score).toMatchObject({ withoutResults: 1, withoutJudgement: 1, withoutRelevant: 1 });
  });

  test("may be averaged over the queries that have results, as trec_eval does unless told otherwise", () => {
    const run = runOf({ q1: ["a"], q2: [] });
    const score = scoreRun(run, qrels, { ...options, averaging: "retrieved" });
    expect(score.queries.map(({ id }) => id)).toEqual(["q1"]);
    expect(score.means.mrr).toMatchObject({ n: 1, mean: 1 });
    expect(score.withoutResults).toBe(3);
  });

  test("may ask for more than the least grade", () => {
    const score = scoreRun(runOf({ q1: ["a"], q4: ["d"] }), qrels, { ...options, relevantFrom: 2 });
    expect(score.queries.map(({ values }) => values.mrr)).toEqual([0, 0, 0, 1]);
    expect(score.withoutRelevant).toBe(3);
  });

  test("of a run without any result is 0, of ids that do not belong together an error", () => {
    expect(scoreRun(new Map(), qrels, options).means.mrr).toMatchObject({ n: 4, mean: 0 });
    expect(() => scoreRun(runOf({ x1: ["a"] }), qrels, options)).toThrow(UsageError);
    expect(() => scoreRun(runOf({ x1: ["a"] }), qrels, options)).toThrow(
      /no query in common: ids such as "x1" in the run and "q1" in the qrels/,
    );
  });
});

describe("two scored runs", () => {
  const many = qrelsOf(Object.fromEntries(Array.from({ length: 40 }, (_, i) => [`q${i}`, { gold: 1 }])));
  const rankOf = (rank: (i: number) => number): Run =>
    runOf(
      Object.fromEntries(
        Array.from({ length: 40 }, (_, i) => [
          `q${i}`,
          [...Array(rank(i)).keys()].map(String).concat("gold"),
        ]),
      ),
    );
  const metrics = ["recall@1", "recall@3", "mrr"];
  const score = (run: Run) => scoreRun(run, many, { metrics, seed: 1 });

  test("that differ for good are told apart, with the direction", () => {
    const worse = score(rankOf((i) => (i % 4 === 0 ? 0 : 2)));
    const better = score(rankOf(() => 0));
    const forward = compareScores([worse], [better], { seed: 1 });
    expect(forward.map(({ metric, verdict }) => [metric, verdict])).toEqual([
      ["recall@1", "better"],
      ["recall@3", "not distinguishable"],
      ["mrr", "better"],
    ]);
    expect(forward[0]).toMatchObject({ before: 0.25, after: 1, mean: 0.75, n: 40 });
    const backward = compareScores([better], [worse], { seed: 1 });
    expect(backward.map(({ verdict }) => verdict)).toEqual(["worse", "not distinguishable", "worse"]);
  });

  test("are judged more carefully the more metrics are compared", () => {
    // Six queries better, none worse: p = 2 / 2^6 = 0.031 alone, three times that among three metrics.
    const before = score(rankOf((i) => (i < 6 ? 3 : 0)));
    const after = score(rankOf(() => 0));
    const all = compareScores([before], [after], { seed: 1 });
    expect(all.map(({ verdict }) => verdict)).toEqual(Array(3).fill("not distinguishable"));
    for (const { p, adjustedP } of all) {
      expect(p).toBeCloseTo(1 / 32);
      expect(adjustedP).toBeCloseTo(3 / 32);
    }
    const alone = (run: Run) => scoreRun(run, many, { metrics: ["mrr"], seed: 1 });
    const [single] = compareScores([alone(rankOf((i) => (i < 6 ? 3 : 0)))], [alone(rankOf(() => 0))], {
      seed: 1,
    });
    expect(single).toMatchObject({ verdict: "better", adjustedP: 1 / 32 });
  });

  test("without a query or a metric in common give nothing", () => {
    const other = scoreRun(runOf({ z: ["gold"] }), qrelsOf({ z: { gold: 1 } }), { metrics, seed: 1 });
    expect(compareScores([score(rankOf(() => 0))], [other], { seed: 1 })).toEqual([]);
    expect(compareScores([score(rankOf(() => 0))], [], { seed: 1 })).toEqual([]);
  });
});

test("Holm's p values are those of the worked example by hand", () => {
  // Sorted 0.01, 0.02, 0.03, 0.5 times 4, 3, 2, 1 is 0.04, 0.06, 0.06, 0.5.
  expect(holm([0.03, 0.01, 0.5, 0.02]).map((p) => Math.round(p * 1e6) / 1e6)).toEqual([
    0.06, 0.04, 0.5, 0.06,
  ]);
  expect(holm([0.9, 0.8])).toEqual([1, 1]);
  expect(holm([])).toEqual([]);
});
