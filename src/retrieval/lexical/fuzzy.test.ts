import { expect, test } from "vitest";
import { closestTerms, fuzzyOptionsSchema } from "./fuzzy.ts";

const vocabulary = ["aalborg", "aalto", "alborg", "oslo", "a"];

test("the closest terms come first, with the Dice coefficient of their n-grams", () => {
  const closest = closestTerms(vocabulary, fuzzyOptionsSchema.parse({}));
  // ^aa aal alb lbo bor or$ against ^aa aal alb lbo bor org rg$: 5 in common of 6 and 7.
  expect(closest("aalbor")).toEqual([
    { term: 0, overlap: 10 / 13 },
    { term: 2, overlap: 6 / 12 },
  ]);
});

test("terms below the least overlap, and beyond the greatest number, are left out", () => {
  const most = fuzzyOptionsSchema.parse({ minOverlap: 0.1, maxTerms: 20 });
  expect(closestTerms(vocabulary, most)("aalbor").map(({ term }) => term)).toEqual([0, 2, 1]);
  expect(closestTerms(vocabulary, { ...most, maxTerms: 1 })("aalbor").map(({ term }) => term)).toEqual([0]);
  expect(closestTerms(vocabulary, most)("xyz")).toEqual([]);
});

test("equally close terms keep the order of the vocabulary", () => {
  const closest = closestTerms(["tarn", "tarm", "tarp"], fuzzyOptionsSchema.parse({ minOverlap: 0.2 }));
  expect(closest("tarx").map(({ term }) => term)).toEqual([0, 1, 2]);
});

test("words shorter than an n-gram still have one", () => {
  expect(closestTerms(["b", "bb"], fuzzyOptionsSchema.parse({ n: 5 }))("b")).toEqual([]);
  expect(closestTerms(["b", "c"], fuzzyOptionsSchema.parse({}))("b")).toEqual([{ term: 0, overlap: 1 }]);
});
