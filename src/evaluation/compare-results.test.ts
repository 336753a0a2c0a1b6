import { expect, test } from "vitest";
import { makeContract, makeItem, makeResult } from "../../test/make-result.ts";
import { compareResults, IncomparableError } from "./compare-results.ts";
import type { Item } from "./item.ts";

const items = (scores: Record<string, number>, changes: Partial<ReturnType<typeof makeItem>> = {}): Item[] =>
  Object.entries(scores).map(([id, em]) => makeItem({ id, em, ...changes }));
const failed = (id: string): Item => ({
  dataset: "nq",
  id,
  stopReason: "policyFailure",
  failed: true,
  failure: "down",
});

test("questions are paired by key, not by order", () => {
  const a = makeResult(items({ x: 1, y: 0, z: 0 }));
  const b = makeResult(items({ x: 1, y: 0, z: 0 }).reverse());
  const comparison = compareResults(a, b, { seed: 1 });
  expect(comparison.pairs).toBe(3);
  expect(comparison.overall.em).toEqual({ n: 3, mean: 0, ci: [0, 0], p: 1, verdict: "not distinguishable" });
});

test("equal ids of two data sets are two questions", () => {
  const a = makeResult([...items({ "0": 1 }), ...items({ "0": 0 }, { dataset: "hotpotqa" })]);
  const b = makeResult([...items({ "0": 1 }, { dataset: "hotpotqa" }), ...items({ "0": 1 })]);
  const { byDataset } = compareResults(a, b, { seed: 1 });
  expect([byDataset.nq?.em?.mean, byDataset.hotpotqa?.em?.mean]).toEqual([0, 1]);
});

test("a gain is found, broken down by hops, and more searches are a cost", () => {
  const before = makeResult(
    Array.from({ length: 40 }, (_, i) => makeItem({ id: `${i}`, hops: 1 + (i % 2), em: 0 })),
  );
  const after = makeResult(
    Array.from({ length: 40 }, (_, i) => makeItem({ id: `${i}`, hops: 1 + (i % 2), em: i % 2, searches: 2 })),
  );
  const comparison = compareResults(before, after, { seed: 1 });
  expect(comparison.overall).toMatchObject({
    em: { mean: 0.5, verdict: "better" },
    searches: { mean: 1, verdict: "worse" },
  });
  expect(comparison.byHops).toMatchObject({
    "1": { em: { mean: 0, n: 20 } },
    "2": { em: { mean: 1, n: 20 } },
  });
});

test("questions that failed or are missing on one side are left out and counted", () => {
  const a = makeResult([...items({ x: 1, y: 1 }), failed("z")]);
  const b = makeResult([...items({ x: 0, z: 1, w: 1 }), failed("y")]);
  expect(compareResults(a, b, { seed: 1 })).toMatchObject({
    pairs: 1,
    failed: 2,
    unpaired: 1,
    overall: { em: { n: 1, mean: -1 } },
  });
});

test("unequal contracts are refused with what differs, and compared by force with a label", () => {
  const a = makeResult(items({ x: 1 }));
  const b = makeResult(items({ x: 1 }), makeContract({ k: 5, split: "validation" }));
  const differences = [
    { key: "k", a: 3, b: 5 },
    { key: "split", a: "test", b: "validation" },
  ];
  const refused = (): unknown => compareResults(a, b, { seed: 1 });
  expect(refused).toThrow(IncomparableError);
  expect(refused).toThrow("k is 3 and 5; split is test and validation");
  expect(refused).toThrow(expect.objectContaining({ differences, code: "usage" }));
  expect(compareResults(a, b, { seed: 1, force: true })).toMatchObject({
    contractDifferences: differences,
    pairs: 1,
  });
});

test("results without a common question cannot be compared, not even by force", () => {
  const compare = (): unknown =>
    compareResults(makeResult(items({ x: 1 })), makeResult(items({ y: 1 })), { seed: 1, force: true });
  expect(compare).toThrow("no question is scored in both");
});
