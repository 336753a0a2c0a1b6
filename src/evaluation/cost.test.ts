/** Costs of episodes against sums worked out by hand. */
import { expect, test } from "vitest";
import { makeTrajectory } from "../../test/make-trajectory.ts";
import type { Assessment, Trajectory } from "../rollout/trajectory.ts";
import type { PolicyUsage } from "../rollout/usage.ts";
import { costOf, costScores, queryCount } from "./cost.ts";
import { scoreTrajectory } from "./score-trajectory.ts";

const usage = (prompt: number, completion: number, dollars?: number): PolicyUsage => ({
  calls: 1,
  promptTokens: prompt,
  cachedTokens: 0,
  completionTokens: completion,
  contextTokens: prompt + completion,
  ...(dollars !== undefined && { dollars }),
});
const assessment: Assessment = {
  score: 1,
  ruleScore: 1,
  unreadable: 0,
  judged: 1,
  usage: usage(30, 1, 0.003),
  ms: 400,
};
const ranking = makeTrajectory({
  usage: usage(50, 5, 0.5),
  time: { policyMs: 7, retrievalMs: 0, totalMs: 7 },
});

test("every part that worked is counted, and the whole is their sum", () => {
  const planner = makeTrajectory({
    usage: usage(100, 10),
    generated: { answer: "Paris", isForced: false, usage: usage(200, 20, 0.02), ms: 300 },
    assessment,
  });
  const ranked = makeTrajectory({ usage: usage(100, 10), rankings: [ranking, ranking] });
  expect(costOf([planner, ranked], 0.25)).toEqual({
    calls: 6,
    promptTokens: 530,
    cachedTokens: 0,
    completionTokens: 51,
    dollars: expect.closeTo(1.273, 12),
    pricing: "partly",
    parts: {
      agent: { calls: 2, promptTokens: 200, completionTokens: 20, seconds: 0.02 },
      generator: { calls: 1, promptTokens: 200, completionTokens: 20, seconds: 0.3, dollars: 0.02 },
      ranker: { calls: 2, promptTokens: 100, completionTokens: 10, seconds: 0.014, dollars: 1 },
      judge: { calls: 1, promptTokens: 30, completionTokens: 1, seconds: 0.4, dollars: 0.003 },
      retrieval: { calls: 2, promptTokens: 0, completionTokens: 0, seconds: 0.01, dollars: 0.25 },
    },
  });
});

test("an agent alone without a price is unpriced, and one with a price is priced", () => {
  expect(costOf([makeTrajectory({ usage: usage(10, 1) })], undefined)).toMatchObject({
    pricing: "unpriced",
    dollars: 0,
  });
  expect(costOf([makeTrajectory({ usage: usage(10, 1, 0.1) })], undefined)).toMatchObject({
    pricing: "priced",
    dollars: 0.1,
  });
});

test("an item's totals hold generator, ranker and searches, and leave the judge out", () => {
  const whole = makeTrajectory({
    usage: usage(100, 10, 0.1),
    generated: { answer: "Paris", isForced: false, usage: usage(200, 20, 0.02), ms: 300 },
    rankings: [ranking],
    assessment,
  });
  expect(costScores(whole, 0.25)).toEqual({
    retrievalMs: 5,
    retrievalDollars: 0.25,
    totalTokens: 10 + 220 + 55,
    totalDollars: expect.closeTo(0.87, 12),
    judgeTokens: 31,
    judgeMs: 400,
    judgeDollars: 0.003,
  });
  expect(scoreTrajectory(whole, { searchDollars: 0.25 })).toMatchObject({ totalTokens: 285 });
  const bare = costScores(makeTrajectory(), undefined);
  expect(bare).toEqual({ retrievalMs: 5, totalTokens: 4 });
});

test("queries are counted as they are billed: sub-queries each, and the question where the environment asks it", () => {
  const turns = (...all: Trajectory["turns"]): Trajectory => makeTrajectory({ turns: all });
  expect(queryCount(turns({ action: { type: "searches", queries: ["a", "b"] }, passages: [] }))).toBe(2);
  expect(queryCount(turns({ action: { type: "answer", answer: "x" }, passages: [] }))).toBe(1);
  expect(queryCount(turns({ action: { type: "search", query: "a" }, given: [], passages: [] }))).toBe(2);
  expect(queryCount(turns({ action: { type: "answer", answer: "x" } }))).toBe(0);
});
