/** Habits against turns written out by hand. */
import { expect, test } from "vitest";
import { compactCodec } from "../environment/search-r1-codec.ts";
import { random } from "../shared/random.ts";
import { habitsSchema, turnsWithHabits } from "./habits.ts";

const actions = [
  { type: "search", query: "Nice Airport" },
  { type: "search", query: "France" },
  { type: "answer", answer: "Euro" },
] as const;
const question = {
  id: "0",
  dataset: "atlas",
  text: "Which currency?",
  goldAnswers: ["Euro"],
  goldPassages: [],
};
const turns = (habits: object, { maxSearches = 4, seed = 1, kind = "currency" } = {}) =>
  turnsWithHabits(actions, habitsSchema.parse(habits), {
    codec: compactCodec,
    question: { ...question, kind },
    maxSearches,
    chance: random(seed, "habits"),
  });
const [first, second, end] = [
  "<search> Nice Airport</search>",
  "<search> France</search>",
  "<answer> Euro</answer>",
];

test("without habits the turns are those of the plan", () => {
  expect(turns({})).toEqual([first, second, end]);
});

test("each habit is what its name says", () => {
  expect(turns({ noSearch: 1 })).toEqual([end]);
  expect(turns({ noRewriting: 1 })).toEqual(["<search> Which currency?</search>", second, end]);
  expect([
    [first, first, second, end],
    [first, second, second, end],
  ]).toContainEqual(turns({ duplicate: 1 }));
  const invalid = turns({ invalid: 1 });
  expect(invalid).toHaveLength(4);
  const [empty] = invalid.filter((turn) => ![first, second, end].includes(turn));
  expect(compactCodec.parse(empty as string)).toEqual({ type: "invalid", reason: "emptyQuery" });
});

test("what is known by heart is answered at once, other questions never are", () => {
  expect(turns({ memory: 1 }, { kind: "familiar" })).toEqual([end]);
  expect(turns({ memory: 1 })).toEqual([first, second, end]);
});

test("habits never take the room of a search that is needed", () => {
  expect(turns({ duplicate: 1, invalid: 1 }, { maxSearches: 2 })).toEqual([first, second, end]);
  expect(turns({ duplicate: 1, invalid: 1 }, { maxSearches: 3 })).toHaveLength(4);
});

test("habits come as often as asked", () => {
  const seeds = Array.from({ length: 400 }, (_, seed) => turns({ noSearch: 0.3 }, { seed }));
  expect(seeds.filter(({ length }) => length === 1).length / 400).toBeCloseTo(0.3, 1);
});
