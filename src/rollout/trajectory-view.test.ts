import { expect, test } from "vitest";
import type { Trajectory } from "./trajectory.ts";
import {
  goldPassageRecall,
  hasGoldRetrieved,
  invalidTurnCount,
  lossMask,
  observationTokenCount,
  policyTokenCount,
  queries,
  retrievedPassages,
  searchCount,
  tokenCount,
  trajectoryText,
  trajectoryTokens,
  truncatedSearchCount,
  turnCount,
} from "./trajectory-view.ts";

const scored = (id: string, score: number) => ({ passage: { id, title: "", text: id }, score });
const trajectory: Trajectory = {
  question: { id: "1", dataset: "test", text: "q", goldAnswers: ["b"], goldPassages: ["p2", "p3"] },
  group: "test/1",
  sample: 0,
  segments: [
    { source: "prompt", text: "q", tokens: [7, 8] },
    { source: "policy", text: "s", tokens: [9], logprobs: [-1] },
    { source: "environment", text: "o", tokens: [1, 2, 3] },
    { source: "policy", text: "a", tokens: [4, 5], logprobs: [-1, -2] },
  ],
  turns: [
    { action: { type: "search", query: "x" }, passages: [scored("p1", 3), scored("p2", 2)], truncated: true },
    { action: { type: "invalid", reason: "noAction" } },
    { action: { type: "search", query: "y" }, passages: [scored("p2", 9)], truncated: false },
    { action: { type: "search", query: "not carried out" } },
  ],
  answer: undefined,
  stopReason: "contextLimit",
  time: { policyMs: 0, retrievalMs: 0, totalMs: 0 },
};

test("tokens, mask and counts follow the segments", () => {
  expect([...trajectoryTokens(trajectory)]).toEqual([7, 8, 9, 1, 2, 3, 4, 5]);
  expect([...lossMask(trajectory)]).toEqual([0, 0, 1, 0, 0, 0, 1, 1]);
  expect(trajectoryText(trajectory)).toBe("qsoa");
  expect(tokenCount(trajectory)).toBe(8);
  expect(policyTokenCount(trajectory)).toBe(3);
  expect(observationTokenCount(trajectory)).toBe(3);
});

test("turns are counted by what became of them", () => {
  expect(turnCount(trajectory)).toBe(4);
  expect(searchCount(trajectory)).toBe(2);
  expect(invalidTurnCount(trajectory)).toBe(1);
  expect(truncatedSearchCount(trajectory)).toBe(1);
  expect(queries(trajectory)).toEqual(["x", "y", "not carried out"]);
});

test("a passage found twice counts once, as it was first found", () => {
  expect(retrievedPassages(trajectory)).toEqual([scored("p1", 3), scored("p2", 2)]);
});

test("gold passages are a share of those marked, and unknown when none is", () => {
  expect(goldPassageRecall(trajectory)).toBe(0.5);
  expect(hasGoldRetrieved(trajectory)).toBe(false);
  const withGold = (goldPassages: string[]) => ({
    ...trajectory,
    question: { ...trajectory.question, goldPassages },
  });
  expect(hasGoldRetrieved(withGold(["p1", "p2", "p1"]))).toBe(true);
  expect(goldPassageRecall(withGold([]))).toBeUndefined();
  expect(hasGoldRetrieved(withGold([]))).toBeUndefined();
});
