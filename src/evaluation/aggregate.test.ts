import { expect, test } from "vitest";
import { makeItem } from "../../test/make-result.ts";
import { summarize } from "./aggregate.ts";

const failed = {
  dataset: "nq",
  id: "9",
  hops: 1,
  stopReason: "retrieverFailure",
  failed: true,
  failure: "down",
} as const;

test("means are over scored questions, failures are counted beside them", () => {
  const { overall } = summarize([makeItem({ em: 1 }), makeItem({ em: 0 }), makeItem({ em: 1 }), failed], {
    seed: 1,
  });
  expect(overall).toMatchObject({ n: 3, failed: 1, em: { n: 3, mean: 2 / 3 } });
});

test("questions are broken down by data set, hops and kind, and sorted", () => {
  const items = [
    makeItem({ dataset: "nq", hops: 10, em: 1 }),
    makeItem({ dataset: "hotpotqa", hops: 2, kind: "bridge", em: 0 }),
    makeItem({ dataset: "nq", hops: 2, em: 0 }),
    makeItem({ dataset: "nq", em: 0 }),
  ];
  const summary = summarize(items, { seed: 1 });
  expect(Object.keys(summary.byDataset)).toEqual(["hotpotqa", "nq"]);
  expect(Object.keys(summary.byHops)).toEqual(["2", "10"]);
  expect(summary.byHops["2"]).toMatchObject({ n: 2, em: { mean: 0 } });
  expect(Object.keys(summary.byKind)).toEqual(["bridge"]);
  expect(summary.overall.em?.mean).toBe(0.25);
  expect(summary.macroEm).toBeCloseTo((0 + 1 / 3) / 2, 12);
});

test("a metric is averaged over the questions that have it", () => {
  const { overall } = summarize([makeItem({ retrievalRecall: 0.5 }), makeItem({})], { seed: 1 });
  expect(overall.retrievalRecall).toEqual({ n: 1, mean: 0.5, ci: [0.5, 0.5] });
  expect(overall.searches?.n).toBe(2);
});

test("when everything failed there is no mean instead of a zero", () => {
  const summary = summarize([failed], { seed: 1 });
  expect(summary.overall).toEqual({ n: 0, failed: 1 });
  expect(summary.macroEm).toBeUndefined();
});

test("a data set without a score leaves no mean over the data sets", () => {
  const summary = summarize([makeItem({ em: 1 }), { ...failed, dataset: "hotpotqa" }], { seed: 1 });
  expect(summary.overall.em?.mean).toBe(1);
  expect(summary.macroEm).toBeUndefined();
});

test("the order of the items changes no mean", () => {
  const items = [
    makeItem({ em: 1, searches: 2 }),
    makeItem({ em: 0, searches: 1 }),
    makeItem({ em: 1, searches: 3 }),
  ];
  const means = (list: typeof items) => {
    const { em, searches } = summarize(list, { seed: 1 }).overall;
    return [em?.mean, searches?.mean];
  };
  expect(means([...items].reverse())).toEqual(means(items));
});
