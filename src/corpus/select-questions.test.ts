import { expect, test } from "vitest";
import { random } from "../shared/random.ts";
import { type QuestionDraft, type QuestionKind, selectQuestions } from "./select-questions.ts";

const kind = (name: string, hops: number, count: number): QuestionKind => ({
  hops,
  candidates: Array.from(
    { length: count },
    (_, i): QuestionDraft => ({
      text: `${name} ${i}`,
      goldAnswers: ["a"],
      goldPassages: [],
      hops,
      kind: name,
    }),
  ),
});

function countsOf(kinds: readonly QuestionKind[], count: number): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { kind = "" } of selectQuestions(kinds, { dataset: "d", split: "s", count }, random(1)))
    counts[kind] = (counts[kind] ?? 0) + 1;
  return counts;
}

test("hops share the number equally, and kinds the number of their hops", () => {
  const kinds = [kind("a", 1, 99), kind("b", 1, 99), kind("c", 2, 99)];
  expect(countsOf(kinds, 40)).toEqual({ a: 10, b: 10, c: 20 });
  expect(countsOf(kinds, 41)).toEqual({ a: 10, b: 10, c: 21 });
});

test("other kinds of the same hops fill up for one that runs out, other hops do not", () => {
  const kinds = [kind("a", 1, 3), kind("b", 1, 99), kind("c", 2, 5)];
  expect(countsOf(kinds, 40)).toEqual({ a: 3, b: 17, c: 5 });
});

test("ids number the questions of the split, in an order that depends on the seed alone", () => {
  const select = (seed: number) =>
    selectQuestions([kind("a", 1, 30)], { dataset: "d", split: "test", count: 30 }, random(seed));
  expect(select(1).map(({ id }) => id)).toEqual(Array.from({ length: 30 }, (_, i) => `test-${i}`));
  expect(select(1)).toEqual(select(1));
  expect(select(2).map(({ text }) => text)).not.toEqual(select(1).map(({ text }) => text));
});
