import { readFile } from "node:fs/promises";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { UsageError } from "../../errors.ts";
import { compareBytes, type RunEntry, rankedIds } from "./ranking.ts";
import { judgeRanking, parseMetric, rankingMetric } from "./ranking-metrics.ts";

interface Golden {
  readonly madeWith: Readonly<Record<string, string>>;
  readonly cases: readonly {
    readonly qrels: Readonly<Record<string, Readonly<Record<string, number>>>>;
    readonly run: Readonly<Record<string, Readonly<Record<string, number>>>>;
    readonly relevantFrom: number;
    readonly values: Readonly<Record<string, Readonly<Record<string, number>>>>;
  }[];
}

const golden = JSON.parse(
  await readFile(join(import.meta.dirname, "../../../test/golden/ranking/golden.json"), "utf8"),
) as Golden;

function mapOf(values: Readonly<Record<string, number>> = {}): Map<string, number> {
  return new Map(Object.entries(values));
}

function entriesOf(values: Readonly<Record<string, number>> = {}): RunEntry[] {
  return Object.entries(values).map(([id, score]) => ({ id, score }));
}

describe("metrics are those of trec_eval, query by query", () => {
  test.each(golden.cases.map((each, i) => [i, each] as const))("case %i", (_, each) => {
    let compared = 0;
    for (const [query, expected] of Object.entries(each.values)) {
      const ids = rankedIds(entriesOf(each.run[query]));
      const ranking = judgeRanking(ids, mapOf(each.qrels[query]), each.relevantFrom);
      for (const [name, value] of Object.entries(expected)) {
        // The last bits of a logarithm differ between C libraries.
        expect(rankingMetric(parseMetric(name), ranking), `${query} ${name}`).toBeCloseTo(value, 13);
        compared++;
      }
    }
    expect(compared).toBeGreaterThan(200);
  });
});

describe("the order of trec_eval", () => {
  test("equal scores are ordered by id, the last in byte order first", () => {
    const ids = ["a", "b", "é", "\ue000", "\u{1f600}"];
    expect(rankedIds(ids.map((id) => ({ id, score: 1 })))).toEqual([...ids].reverse());
    expect([...ids].sort().at(-1)).toBe("\ue000");
  });

  test("scores that are equal as 32-bit floats are equal", () => {
    const entries = [
      { id: "a", score: 1 + 1e-9 },
      { id: "b", score: 1 },
      { id: "c", score: 1 + 1e-6 },
    ];
    expect(rankedIds(entries)).toEqual(["c", "b", "a"]);
  });

  test("texts are compared as their UTF-8 bytes are", () => {
    const text = fc.string({ unit: "grapheme", maxLength: 6 });
    fc.assert(
      fc.property(text, text, (a, b) => {
        expect(Math.sign(compareBytes(a, b))).toBe(Buffer.compare(Buffer.from(a), Buffer.from(b)));
      }),
    );
  });
});

const names = ["precision", "recall", "success", "map", "mrr", "ndcg", "judged"];
const cutoff = fc.integer({ min: 1, max: 12 });
const grades = fc.dictionary(fc.constantFrom(..."abcdefgh"), fc.integer({ min: -1, max: 3 }));
const order = fc.shuffledSubarray([..."abcdefghij"]);

describe("whatever the ranking and the judgements", () => {
  test("every metric is between 0 and 1", () => {
    fc.assert(
      fc.property(grades, order, cutoff, fc.constantFrom(...names), (judged, ids, k, name) => {
        const value = rankingMetric(parseMetric(`${name}@${k}`), judgeRanking(ids, mapOf(judged)));
        expect(value).toBeGreaterThanOrEqual(0);
        expect(value).toBeLessThanOrEqual(1);
      }),
    );
  });

  test("a run in the order of the grades has 1 in recall, MAP, MRR and nDCG", () => {
    fc.assert(
      fc.property(grades, cutoff, (judged, k) => {
        const ids = Object.keys(judged).sort((a, b) => (judged[b] as number) - (judged[a] as number));
        const ranking = judgeRanking(ids, mapOf(judged));
        const hasRelevant = ranking.relevant > 0 ? 1 : 0;
        for (const name of ["recall@100", "map", "mrr", "ndcg", `ndcg@${k}`, `success@${k}`])
          expect(rankingMetric(parseMetric(name), ranking)).toBeCloseTo(hasRelevant, 12);
      }),
    );
  });

  test("recall and success never fall as k grows", () => {
    fc.assert(
      fc.property(grades, order, cutoff, fc.constantFrom("recall", "success"), (judged, ids, k, name) => {
        const ranking = judgeRanking(ids, mapOf(judged));
        const at = (each: number): number => rankingMetric(parseMetric(`${name}@${each}`), ranking);
        expect(at(k + 1)).toBeGreaterThanOrEqual(at(k));
      }),
    );
  });

  test("moving a better passage up never lowers nDCG, MAP or MRR", () => {
    fc.assert(
      fc.property(grades, order, fc.nat(), (judged, ids, at) => {
        if (ids.length < 2) return;
        const i = at % (ids.length - 1);
        const gradeAt = (rank: number): number => judged[ids[rank] as string] ?? 0;
        if (gradeAt(i) >= gradeAt(i + 1)) return;
        const moved = [...ids.slice(0, i), ids[i + 1], ids[i], ...ids.slice(i + 2)] as string[];
        for (const name of ["ndcg", "map", "mrr"]) {
          const value = (each: readonly string[]): number =>
            rankingMetric(parseMetric(name), judgeRanking(each, mapOf(judged)));
          expect(value(moved)).toBeGreaterThanOrEqual(value(ids) - 1e-12);
        }
      }),
    );
  });
});

describe("names of metrics", () => {
  test.each([
    ["P@5", "precision@5", 5],
    ["NDCG@10", "ndcg@10", 10],
    ["mrr", "mrr", Number.POSITIVE_INFINITY],
  ])("%s is %s", (written, name, k) => {
    expect(parseMetric(written)).toMatchObject({ name, cutoff: k });
  });

  test.each(["recall", "recall@0", "recall@x", "ndcg@-1", "f1@5", "", "map@"])("%j is refused", (name) => {
    expect(() => parseMetric(name)).toThrow(UsageError);
    expect(() => parseMetric(name)).toThrow(/expected precision@K, recall@K/);
  });
});

test("judged@k is the share of the first results that somebody judged", () => {
  const ranking = judgeRanking(["a", "x", "b", "y"], new Map(Object.entries({ a: 0, b: 1, c: 1 })));
  expect(rankingMetric(parseMetric("judged@3"), ranking)).toBeCloseTo(2 / 3);
});
