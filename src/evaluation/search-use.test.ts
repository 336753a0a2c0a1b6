/** Use of searches against a table worked out by hand. */
import { expect, test } from "vitest";
import { makeQuestion, makeSegment, makeTrajectory } from "../../test/make-trajectory.ts";
import type { Trajectory } from "../rollout/trajectory.ts";
import { noUsage } from "../rollout/usage.ts";
import { searchUse } from "./search-use.ts";

const found = (...ids: readonly string[]) =>
  ids.map((id) => ({
    passage: { id, title: id, text: id === "gold-2" ? "Paris it is" : "nothing" },
    score: 1,
  }));
const search = (query: string, ...ids: readonly string[]) => ({
  action: { type: "search", query } as const,
  passages: found(...ids),
});

/** An episode of these turns, each observation inserted. */
function episode(turns: Trajectory["turns"], changes: Partial<Trajectory> = {}): Trajectory {
  const segments = turns.flatMap((_, i) => [
    makeSegment("policy", [10 + i], [Math.log(0.5)]),
    ...(i < turns.length - 1 ? [makeSegment("environment", [20 + i])] : []),
  ]);
  return makeTrajectory({ turns, segments: [makeSegment("prompt", [1]), ...segments], ...changes });
}
const answer = { action: { type: "answer", answer: "Paris" } as const };
const question = makeQuestion({ goldPassages: ["gold-1", "gold-2"] });

test("searches that repeat a query or bring nothing new are redundant", () => {
  const turns = [
    search("x", "a", "b"),
    search("y", "a"),
    search("X ", "c"),
    search("z"),
    search("w", "d", "a"),
    answer,
  ];
  expect(searchUse(episode(turns)).redundantSearches).toBe(2);
});

test("searches after all gold passages are counted, and each hop is found or not", () => {
  const turns = [search("x", "gold-1"), search("y", "gold-2"), search("z", "c"), search("w", "d"), answer];
  expect(searchUse(episode(turns, { question }))).toMatchObject({
    searchesAfterEvidence: 2,
    goldFound: [1, 1],
    passagesSeen: 4,
    answerSupported: 1,
    abstained: 0,
    confidence: expect.closeTo(0.5, 12),
  });
  expect(searchUse(episode([search("x", "gold-2"), search("y", "c"), answer], { question }))).toMatchObject({
    searchesAfterEvidence: 0,
    goldFound: [0, 1],
  });
});

test("without marked gold passages the evidence is a passage with a gold answer", () => {
  const use = searchUse(episode([search("x", "gold-2"), search("y", "c"), answer]));
  expect(use.searchesAfterEvidence).toBe(1);
  expect(use).not.toHaveProperty("goldFound");
});

test("an answer that no passage holds is not supported; yes and no cannot be", () => {
  expect(searchUse(episode([search("x", "a"), answer])).answerSupported).toBe(0);
  expect(searchUse(episode([search("x", "a"), answer], { answer: "yes" }))).not.toHaveProperty(
    "answerSupported",
  );
});

test("a planner's answer has no confidence: its last turn hands over", () => {
  const generated = { answer: "Paris", isForced: false, usage: noUsage, ms: 0 };
  expect(searchUse(episode([search("x", "a"), answer])).confidence).toBeCloseTo(0.5, 12);
  expect(searchUse(episode([search("x", "a"), answer], { generated })).confidence).toBeUndefined();
});
