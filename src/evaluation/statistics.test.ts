/** Small statistics of comparisons: Holm, least detectable difference, several seeds, selective answering, decomposition. */
import { expect, test } from "vitest";
import { makeContract, makeItem, makeResult } from "../../test/make-result.ts";
import { makeQuestion } from "../../test/make-trajectory.ts";
import type { Retriever } from "../retrieval/retriever.ts";
import { compareSeeds } from "./compare-seeds.ts";
import { decompose, underCondition } from "./decompose.ts";
import { detectableDifference, questionsToDetect, sampleDeviation } from "./detectable.ts";
import { holm } from "./holm.ts";
import { methodTable } from "./method-table.ts";
import { riskCoverage } from "./risk-coverage.ts";
import { isScorable, requireScorable } from "./scorable.ts";

const result = (em: readonly (0 | 1)[], changes: Parameters<typeof makeContract>[0] = {}) =>
  makeResult(
    em.map((value, i) => makeItem({ id: String(i), em: value, f1: value })),
    makeContract(changes),
  );
/** `ones` right answers of `n`. */
const scores = (ones: number, n = 100): (0 | 1)[] => Array.from({ length: n }, (_, i) => (i < ones ? 1 : 0));

test("Holm multiplies the smallest p most, and keeps their order", () => {
  expect(holm([0.01, 0.04, 0.03])).toEqual([0.03, 0.06, 0.06]);
  expect(holm([0.9, 0.9])).toEqual([1, 1]);
});

test("125 questions show a difference of a quarter at a deviation of one, as textbooks have it", () => {
  expect(detectableDifference(1, 125)).toBeCloseTo(0.2506, 4);
  expect(questionsToDetect(1, 0.2506)).toBe(125);
  expect(sampleDeviation([0, 0, 1, 1])).toBeCloseTo(Math.sqrt(1 / 3), 12);
  expect(detectableDifference(1, 0)).toBeUndefined();
  expect(detectableDifference(0, 100)).toBeUndefined();
});

test("equal seeds are paired, and a clear difference over seeds and questions is found", () => {
  const before = [1, 2, 3].map((seed) => result(scores(30 + seed), { seed }));
  const after = [3, 1, 2].map((seed) => result(scores(60 + seed), { seed }));
  const { overall, questions } = compareSeeds({ before, after }, ["em"], { seed: 1 });
  expect(questions).toBe(100);
  expect(overall.em).toMatchObject({
    mean: expect.closeTo(0.3, 12),
    isPaired: true,
    verdict: "better",
    seeds: [3, 3],
  });
  // Three seeds of 100 questions that differ in about a third: an interval of 0.18, and 2.8 of its 3.92 deviations.
  expect(overall.em?.detectable).toBeGreaterThan(0.1);
  expect(overall.em?.detectable).toBeLessThan(0.16);
  const unpaired = compareSeeds({ before, after: after.slice(0, 2) }, ["em"], { seed: 1 });
  expect(unpaired.overall.em).toMatchObject({ isPaired: false, seeds: [3, 2] });
});

test("unequal contracts are refused among any of the runs", () => {
  const before = [result(scores(1)), result(scores(1), { k: 5, seed: 2 })];
  expect(() => compareSeeds({ before, after: before }, ["em"], { seed: 1 })).toThrow("k is 3 and 5");
});

test("the curve of selective answering starts with the most confident answers and leaves abstentions out", () => {
  const items = [
    makeItem({ id: "1", answer: "a", em: 1, confidence: 0.9 }),
    makeItem({ id: "2", answer: "b", em: 0, confidence: 0.5 }),
    makeItem({ id: "3", answer: "c", em: 1, confidence: 0.7 }),
    makeItem({ id: "4", em: 0, abstained: 1 }),
  ];
  expect(riskCoverage(items)).toEqual({
    n: 4,
    coverage: 0.75,
    risk: expect.closeTo(1 / 3, 12),
    area: expect.closeTo(1 / 9, 12),
    points: [
      { confidence: 0.9, coverage: 0.25, risk: 0 },
      { confidence: 0.7, coverage: 0.5, risk: 0 },
      { confidence: 0.5, coverage: 0.75, risk: expect.closeTo(1 / 3, 12) },
    ],
  });
  expect(riskCoverage([makeItem({ answer: "a", em: 1 })])).toEqual({
    n: 1,
    coverage: 1,
    risk: 0,
    points: [],
  });
  expect(riskCoverage([makeItem({ em: 0 })])).toBeUndefined();
});

test("the loss falls into what could not be found and what could not be used", () => {
  const parts = decompose(
    { none: result(scores(10)), real: result(scores(40)), oracle: result(scores(70)) },
    { seed: 1 },
  );
  expect(parts).toMatchObject({
    n: 100,
    gained: { mean: expect.closeTo(0.3, 12), verdict: "better" },
    notFound: { mean: expect.closeTo(0.3, 12) },
    notUsed: { mean: expect.closeTo(0.3, 12) },
  });
});

test("oracle retrieval shows gold passages first, those that hold the answer where none are marked", async () => {
  const passage = (id: string, text = "") => ({ id, title: id, text });
  const retriever: Retriever = {
    identity: { method: "m", corpusHash: "c", indexHash: "i", parameters: {} },
    retrieve: async (queries, k) =>
      queries.map(() =>
        ["a", "b", "c"]
          .slice(0, k)
          .map((id) => ({ passage: passage(id, id === "c" ? "Paris" : ""), score: 1 })),
      ),
  };
  const ids = async (
    condition: "none" | "real" | "oracle",
    goldPassages: readonly string[],
  ): Promise<string[]> => {
    const question = makeQuestion({ goldPassages });
    const passages = new Map([["g", passage("g")]]);
    const [list = []] = await underCondition(retriever, condition, { question, passages }).retrieve(["q"], 2);
    return list.map((found) => found.passage.id);
  };
  expect(await ids("none", ["g"])).toEqual([]);
  expect(await ids("real", ["g"])).toEqual(["a", "b"]);
  expect(await ids("oracle", ["g"])).toEqual(["g", "a"]);
  expect(await ids("oracle", [])).toEqual(["c", "a"]);
});

test("with no room for all gold passages the oracle shows the one that the query finds", async () => {
  const passage = (id: string) => ({ id, title: id, text: "" });
  const retriever: Retriever = {
    identity: { method: "m", corpusHash: "c", indexHash: "i", parameters: {} },
    retrieve: async (queries, k) =>
      queries.map((query) =>
        ["a", ...(query === "second hop" ? ["g2", "g1"] : ["g1"])]
          .slice(0, k)
          .map((id) => ({ passage: passage(id), score: 1 })),
      ),
  };
  const question = makeQuestion({ goldPassages: ["g1", "g2"] });
  const passages = new Map(["g1", "g2"].map((id) => [id, passage(id)]));
  const oracle = underCondition(retriever, "oracle", { question, passages });
  const shown = async (query: string, k: number): Promise<string[]> =>
    (await oracle.retrieve([query], k)).flatMap((list) => list.map((found) => found.passage.id));
  expect(await shown("first hop", 1)).toEqual(["g1"]);
  expect(await shown("second hop", 1)).toEqual(["g2"]);
  expect(await shown("second hop", 3)).toEqual(["g2", "g1", "a"]);
});

test("gold answers that vanish when normalised are refused by name", () => {
  expect(isScorable({ goldAnswers: ["The", "Paris"] })).toBe(true);
  expect(() =>
    requireScorable([makeQuestion(), makeQuestion({ id: "q2", goldAnswers: ["The", "?"] })]),
  ).toThrow('atlas/q2 ("The", "?")');
});

test("a table accounts for every method, and compares only what was asked the same questions", () => {
  const table = methodTable(
    [
      { name: "broken", failure: "no such file" },
      { name: "direct", result: result(scores(20)) },
      { name: "rag", result: result(scores(60), { codec: "compact", k: 5 }) },
      { name: "other", result: result(scores(60), { questionsHash: "q1" }) },
    ],
    { seed: 1 },
  );
  expect(table).toMatchObject({ reference: "direct", sets: ["nq"] });
  expect(
    table.rows.map(({ name, unequal, differences }) => [name, unequal, differences.nq?.verdict]),
  ).toEqual([
    ["broken", [], undefined],
    ["direct", [], undefined],
    ["rag", [], "better"],
    ["other", ["questionsHash"], undefined],
  ]);
  // One set is one comparison: all questions are that set and do not count as another.
  const cell = table.rows[2]?.differences.nq;
  expect(cell?.adjustedP).toBe(cell?.p);
});

test("several sets and all questions are compared together, and the macro mean is over the sets", () => {
  const two = (nq: number, hotpot: number) =>
    makeResult([
      ...scores(nq, 50).map((em, i) => makeItem({ id: String(i), em })),
      ...scores(hotpot, 10).map((em, i) => makeItem({ dataset: "hotpotqa", id: String(i), em })),
    ]);
  const table = methodTable(
    [
      { name: "a", result: two(10, 1) },
      { name: "b", result: two(40, 9) },
    ],
    { seed: 1 },
  );
  expect(table.sets).toEqual(["hotpotqa", "nq", "all"]);
  expect(table.rows[1]?.macro).toBeCloseTo((0.8 + 0.9) / 2, 12);
  const cells = Object.values(table.rows[1]?.differences ?? {});
  expect(cells).toHaveLength(3);
  const smallest = cells.toSorted((a, b) => a.p - b.p)[0];
  expect(smallest?.adjustedP).toBeCloseTo(3 * (smallest?.p ?? 0), 12);
});

test("a table is by any metric, and less of a cost is better", () => {
  const searched = (searches: number, score: number) =>
    makeResult(scores(50).map((em, i) => makeItem({ id: String(i), em, searches, score })));
  const methods = [
    { name: "a", result: searched(3, 0) },
    { name: "b", result: searched(1, 1) },
  ];
  const verdict = (metric: "searches" | "score" | "em") =>
    methodTable(methods, { seed: 1, metric }).rows[1]?.differences.nq?.verdict;
  expect([verdict("searches"), verdict("score"), verdict("em")]).toEqual([
    "better",
    "better",
    "not distinguishable",
  ]);
});

test("scores of different judges are not compared, exact match is", () => {
  const judged = (judge: string) =>
    makeResult(
      scores(50).map((em, i) => makeItem({ id: String(i), em, score: em })),
      makeContract({ answerJudge: { judge, judgeRule: "exactMatch", judgePromptHash: "p" } }),
    );
  const methods = [
    { name: "a", result: judged("model x") },
    { name: "b", result: judged("model y") },
  ];
  expect(methodTable(methods, { seed: 1, metric: "score" }).rows[1]).toMatchObject({
    unequal: ["judge"],
    differences: {},
  });
  expect(methodTable(methods, { seed: 1 }).rows[1]?.unequal).toEqual([]);
});

test("a method whose every question failed is no reference, and a set without a score has no macro mean", () => {
  const failed = {
    dataset: "hotpotqa",
    id: "1",
    failed: true,
    stopReason: "policyFailure",
    failure: "down",
  } as const;
  const table = methodTable(
    [
      { name: "down", result: makeResult([failed]) },
      { name: "partly", result: makeResult([makeItem({ em: 1 }), failed]) },
    ],
    { seed: 1 },
  );
  expect(table.reference).toBe("partly");
  expect(table.rows[1]?.macro).toBeUndefined();
});

test("a reference that could not be measured compares nothing, and an unknown one is refused", () => {
  const methods = [
    { name: "a", failure: "broken" },
    { name: "b", result: result(scores(1)) },
  ];
  const table = methodTable(methods, { seed: 1, reference: "a" });
  expect(table).toMatchObject({ reference: undefined, missingReference: "a" });
  expect(table.rows[1]?.differences).toEqual({});
  expect(() => methodTable(methods, { seed: 1, reference: "c" })).toThrow("no method c");
});

test("passages with the word no are no evidence for a question whose answer is no", async () => {
  const retriever: Retriever = {
    identity: { method: "m", corpusHash: "c", indexHash: "i", parameters: {} },
    retrieve: async (queries, k) =>
      queries.map(() =>
        ["a", "b"].slice(0, k).map((id) => ({
          passage: { id, title: id, text: id === "b" ? "There is no lake." : "" },
          score: 1,
        })),
      ),
  };
  const question = makeQuestion({ goldAnswers: ["no"] });
  const oracle = underCondition(retriever, "oracle", { question, passages: new Map() });
  const [list = []] = await oracle.retrieve(["q"], 2);
  expect(list.map(({ passage }) => passage.id)).toEqual(["a", "b"]);
});
