import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Passage } from "../corpus/passage.ts";
import { ConfigError, RetrieverError } from "../errors.ts";
import { explainRetrieval } from "./explain-retrieval.ts";
import { fuse, hybridRetriever } from "./hybrid.ts";
import { buildBm25Index } from "./lexical/bm25.ts";
import { describeRetriever } from "./retriever.suite.ts";
import type { Retriever, ScoredPassage } from "./retriever.ts";
import { scriptedRetriever } from "./scripted-retriever.ts";

const passageOf = (id: string): Passage => ({ id, title: id, text: `text of ${id}` });
const scored = (...entries: readonly (readonly [string, number])[]): ScoredPassage[] =>
  entries.map(([id, score]) => ({ passage: passageOf(id), score }));
const ids = (answer: readonly ScoredPassage[]): string[] => answer.map(({ passage }) => passage.id);
const always = (...found: readonly string[]): Retriever => scriptedRetriever(() => found.map(passageOf));
const scriptedScores = (...entries: readonly (readonly [string, number])[]): Retriever => ({
  identity: always().identity,
  retrieve: async (queries) => queries.map(() => scored(...entries)),
});
const rrf = { type: "rrf", k: 60 } as const;

describeRetriever("hybrid of two lexical indexes", async (passages) => {
  const words = await buildBm25Index(passages);
  const titles = await buildBm25Index(passages, { titleWeight: 10, stemming: false });
  return hybridRetriever([
    { name: "words", retriever: words },
    { name: "titles", retriever: titles },
  ]);
});

describe("reciprocal rank fusion", () => {
  test("gives the scores of a table made by hand", () => {
    const rankings = [
      { name: "a", answer: scored(["p", 9], ["q", 8], ["r", 1]) },
      { name: "b", answer: scored(["r", 0.9], ["p", 0.8], ["s", 0.1]) },
    ];
    // p: 1/61 + 1/62, r: 1/63 + 1/61, q: 1/62, s: 1/63
    expect(fuse(rankings, rrf)).toEqual([
      { passage: passageOf("p"), score: 1 / 61 + 1 / 62 },
      { passage: passageOf("r"), score: 1 / 63 + 1 / 61 },
      { passage: passageOf("q"), score: 1 / 62 },
      { passage: passageOf("s"), score: 1 / 63 },
    ]);
    // With k = 0 a first rank counts as much as a second and a third together, and more.
    expect(ids(fuse(rankings, { type: "rrf", k: 0 }))).toEqual(["p", "r", "q", "s"]);
  });

  test("tells equal sums apart by how far apart the rankings had the two", () => {
    // Both are first once and second once. The first ranking hardly tells them apart, the second one does.
    const close = { name: "a", answer: scored(["p", 9], ["q", 8.9], ["r", 1]) };
    const clear = { name: "b", answer: scored(["q", 0.9], ["p", 0.5], ["r", 0.1]) };
    for (const rankings of [
      [close, clear],
      [clear, close],
    ]) {
      const fused = fuse(rankings, rrf);
      expect(ids(fused)).toEqual(["q", "p", "r"]);
      expect(fused[0]?.score).toBe(fused[1]?.score);
    }
  });

  test("gives the same ranks the same score, whichever ranking had which", () => {
    const sums = [
      [1, 3, 20],
      [20, 1, 3],
      [3, 20, 1],
    ].map((ranks) => {
      const rankings = ranks.map((rank, part) => ({
        name: `${part}`,
        answer: scored(
          ...Array.from({ length: 20 }, (_, i) => [i + 1 === rank ? "p" : `${part}-${i}`, -i] as const),
        ),
      }));
      return fuse(rankings, rrf)[0];
    });
    for (const sum of sums) expect(sum).toEqual({ passage: passageOf("p"), score: 1 / 61 + 1 / 63 + 1 / 80 });
  });

  test("keeps the order of the first ranking where scores are equal", () => {
    const rankings = [
      { name: "a", answer: scored(["p", 2], ["q", 1]) },
      { name: "b", answer: scored(["q", 2], ["p", 1], ["r", 0]) },
      { name: "c", answer: scored(["x", 2], ["y", 1], ["s", 0]) },
    ];
    expect(ids(fuse(rankings, rrf))).toEqual(["p", "q", "x", "y", "r", "s"]);
  });

  test("keeps the order of the rankings for equal scores when they are of different lengths", () => {
    const rankings = [
      { name: "a", answer: scored(["x", 1]) },
      { name: "b", answer: scored(["p", 2], ["r", 1], ["s", 0]) },
      { name: "c", answer: scored(["q", 2]) },
    ];
    expect(ids(fuse(rankings, rrf)).slice(0, 3)).toEqual(["x", "p", "q"]);
  });

  test("equals the sum over rankings, whatever they hold", () => {
    const ranking = fc.uniqueArray(fc.constantFrom(..."abcdefghij"), { maxLength: 10 });
    fc.assert(
      fc.property(
        fc.array(ranking, { minLength: 1, maxLength: 4 }),
        fc.integer({ min: 0, max: 100 }),
        (lists, k) => {
          const rankings = lists.map((list, i) => ({
            name: `${i}`,
            answer: list.map((id, at) => ({ passage: passageOf(id), score: -at })),
          }));
          const fused = fuse(rankings, { type: "rrf", k });
          expect(new Set(ids(fused))).toEqual(new Set(lists.flat()));
          for (const { passage, score } of fused) {
            const expected = lists.reduce((sum, list) => {
              const at = list.indexOf(passage.id);
              return at < 0 ? sum : sum + 1 / (k + at + 1);
            }, 0);
            expect(score).toBeCloseTo(expected, 12);
          }
          for (const [i, { score }] of fused.entries())
            expect(score).toBeLessThanOrEqual(fused[i - 1]?.score ?? Number.POSITIVE_INFINITY);
        },
      ),
    );
  });
});

describe("weighted fusion", () => {
  test("scales the scores of each ranking to 0..1 and adds them by weight", () => {
    const rankings = [
      { name: "a", answer: scored(["p", 30], ["q", 20], ["r", 10]) },
      { name: "b", answer: scored(["s", 0.5], ["q", 0.5]) },
      { name: "c", answer: [] },
    ];
    const weights = { a: 1, b: 0.6, c: 5 };
    expect(fuse(rankings, { type: "weighted", weights })).toEqual([
      { passage: passageOf("q"), score: 0.5 + 0.6 },
      { passage: passageOf("p"), score: 1 },
      { passage: passageOf("s"), score: 0.6 },
      { passage: passageOf("r"), score: 0 },
    ]);
  });

  test("counts all parts alike where no weights are given", () => {
    const rankings = [
      { name: "a", answer: scored(["p", 30], ["q", 20], ["r", 10]) },
      { name: "b", answer: scored(["r", 0.9], ["q", 0.8], ["p", 0.1]) },
    ];
    const equal = fuse(rankings, { type: "weighted" });
    expect(equal).toEqual(fuse(rankings, { type: "weighted", weights: { a: 1, b: 1 } }));
    expect(ids(equal)).toEqual(["q", "p", "r"]);
  });

  test("scales a ranking that holds all that its part found from 0, where it lacks a passage of the others", () => {
    const few = { name: "a", answer: scored(["p", 10], ["q", 8]), isWhole: true };
    const many = { name: "b", answer: scored(["r", 3], ["s", 2], ["q", 1]) };
    const of = (...rankings: Parameters<typeof fuse>[0]) => fuse(rankings, { type: "weighted" });
    expect(of(few, many)).toMatchObject([
      { passage: { id: "p" }, score: 1 },
      { passage: { id: "r" }, score: 1 },
      { passage: { id: "q" }, score: 0.8 },
      { passage: { id: "s" }, score: 0.5 },
    ]);
    const lacksNone = { name: "b", answer: scored(["q", 3], ["p", 2]) };
    expect(of(few, lacksNone)).toMatchObject([{ score: 1 }, { score: 1 }]);
    expect(of({ ...few, answer: scored(["p", -1], ["q", -3]) }, many)[0]).toMatchObject({ score: 1 });
  });

  test("is how a hybrid ranks unless it is told otherwise", async () => {
    const one = scriptedScores(["p", 10], ["q", 2], ["r", 1]);
    const other = scriptedScores(["q", 10], ["r", 9.9], ["p", 9]);
    const parts = [
      { name: "one", retriever: one },
      { name: "other", retriever: other },
    ];
    const best = async (options: Parameters<typeof hybridRetriever>[1]): Promise<string[]> =>
      ids((await hybridRetriever(parts, { ...options, depth: 3 }).retrieve(["query"], 3))[0] ?? []);
    expect(await best({})).toEqual(
      await best({ fusion: { type: "weighted", weights: { one: 1, other: 1 } } }),
    );
    expect((await hybridRetriever(parts, { depth: 3 }).retrieve(["query"], 1))[0]?.[0]?.score).toBeCloseTo(
      10 / 9,
      12,
    );
    expect(hybridRetriever(parts).identity.parameters.fusion).toBe("equal weights");
    expect(hybridRetriever(parts, { fusion: { k: 60 } }).identity.parameters.fusion).toBe("rrf 60");
  });

  test("is meant by weights without a type", () => {
    const parts = [{ name: "a", retriever: always("p") }];
    const { parameters } = hybridRetriever(parts, { fusion: { weights: { a: 2 } } }).identity;
    expect(parameters.fusion).toBe('{"a":2}');
  });

  test("needs a weight for every part", () => {
    const parts = [
      { name: "a", retriever: always("p") },
      { name: "b", retriever: always("p") },
    ];
    for (const weights of [{ a: 1 }, { a: 1, b: 1, c: 1 }, { a: 0, b: 0 }])
      expect(() => hybridRetriever(parts, { fusion: { type: "weighted", weights } })).toThrow(
        /expected a weight for each of a, b/,
      );
    expect(() => hybridRetriever(parts, { fusion: { type: "weighted", weights: { a: -1, b: 2 } } })).toThrow(
      ConfigError,
    );
  });
});

describe("a hybrid retriever", () => {
  test("costs what its parts cost, and nothing where they cost nothing", () => {
    const billed = (dollars: number): Retriever => ({
      ...always("p"),
      spent: () => ({ calls: 1, tokens: 0, dollars }),
    });
    const of = (...retrievers: readonly Retriever[]): Retriever =>
      hybridRetriever(retrievers.map((retriever, i) => ({ name: `${i}`, retriever })));
    expect(of(billed(0.5), always("q"), billed(0.25)).spent?.()).toEqual({
      calls: 2,
      tokens: 0,
      dollars: 0.75,
    });
    expect(of(always("p"), always("q")).spent).toBeUndefined();
  });

  test("takes as many passages from its parts as it is told, or k where that is more", async () => {
    const asked: number[] = [];
    const part: Retriever = {
      identity: always().identity,
      retrieve: async (queries, k) => {
        asked.push(k);
        return queries.map(() => []);
      },
    };
    const hybrid = hybridRetriever([{ name: "part", retriever: part }], { depth: 20 });
    await hybrid.retrieve(["q"], 5);
    await hybrid.retrieve(["q"], 30);
    expect(asked).toEqual([20, 30]);
  });

  test("refuses parts of different corpora, without a name of their own, or none", async () => {
    const one = await buildBm25Index([passageOf("a")]);
    const other = await buildBm25Index([passageOf("b")]);
    const mixed = () =>
      hybridRetriever([
        { name: "one", retriever: one },
        { name: "other", retriever: other },
      ]);
    expect(mixed).toThrow(RetrieverError);
    expect(mixed).toThrow(/must be of one corpus, got one of .*, other of/);
    const twins = [
      { name: "x", retriever: one },
      { name: "x", retriever: one },
    ];
    expect(() => hybridRetriever(twins)).toThrow(/names of their own, got x, x/);
    expect(() => hybridRetriever([])).toThrow(ConfigError);
    expect(() => hybridRetriever([{ name: "x", retriever: one }], { depth: 0 })).toThrow(/depth/);
  });

  test("has another identity with other parts, fusion or depth", async () => {
    const one = await buildBm25Index([passageOf("a")]);
    const other = await buildBm25Index([passageOf("a")], { k1: 2 });
    const hash = (...args: Parameters<typeof hybridRetriever>): string =>
      hybridRetriever(...args).identity.indexHash;
    const hashes = [
      hash([{ name: "x", retriever: one }]),
      hash([{ name: "y", retriever: one }]),
      hash([{ name: "x", retriever: other }]),
      hash([{ name: "x", retriever: one }], { depth: 7 }),
      hash([{ name: "x", retriever: one }], { fusion: { type: "rrf", k: 1 } }),
    ];
    expect(new Set(hashes).size).toBe(hashes.length);
  });
});

describe("an explanation", () => {
  const clock = (): (() => number) => {
    let time = 0;
    return () => (time += 5);
  };

  test("shows each part with its time, and where fused passages stood", async () => {
    const parts = [
      { name: "bm25", retriever: always("p", "q", "r") },
      { name: "dense", retriever: always("q", "s") },
    ];
    const hybrid = hybridRetriever(parts, { fusion: rrf });
    const { stages, answer } = await explainRetrieval(hybrid, { query: "x", k: 2 }, { now: clock() });
    expect(stages.map(({ name, milliseconds }) => [name, milliseconds])).toEqual([
      ["bm25", 5],
      ["dense", 5],
      ["fusion", 5],
    ]);
    expect(stages[2]?.ranked).toEqual([
      { id: "q", score: 1 / 62 + 1 / 61, rank: 1, before: { bm25: 2, dense: 1 } },
      { id: "p", score: 1 / 61, rank: 2, before: { bm25: 1 } },
    ]);
    expect(answer).toEqual((await hybrid.retrieve(["x"], 2))[0]);
  });

  test("of a retriever without stages is one stage, and stages of stages are named by their part", async () => {
    const single = await explainRetrieval(always("p"), { query: "x", k: 1 }, { now: clock() });
    expect(single.stages.map(({ name }) => name)).toEqual(["scripted"]);
    const inner = hybridRetriever([
      { name: "a", retriever: always("p") },
      { name: "b", retriever: always("q") },
    ]);
    const outer = hybridRetriever([
      { name: "both", retriever: inner },
      { name: "c", retriever: always("q", "p") },
    ]);
    const { stages } = await explainRetrieval(outer, { query: "x", k: 1 }, { now: clock() });
    expect(stages.map(({ name }) => name)).toEqual(["both/a", "both/b", "both/fusion", "c", "fusion"]);
    // The inner fusion scores both the same, so the order of c decides.
    expect(stages.at(-1)?.ranked[0]?.before).toEqual({ both: 2, c: 1 });
  });
});
