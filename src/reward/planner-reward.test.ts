import { describe, expect, it, test } from "vitest";
import { call, episode, invalid, search } from "./planner.fixture.ts";
import {
  costReward,
  formatPenalty,
  outcomeGain,
  type PlannerRewardOptions,
  plannerReward,
  plannerRewardSchema,
  processReward,
} from "./planner-reward.ts";

// The tables are worked by hand from the equations of arXiv 2508.20368; the seed's examples are 1.70, 0.20 and 1.70.
const caps = { roundCap: 5, subQueryCap: 10 };

test.each([
  [1, 0, 1.5],
  [1, 1, 1],
  [0, 0, 0.5],
  [0, 1, 0],
] as const)(
  "Eq. 2: score %i over a baseline of %i is worth %f, in the order of Eq. 1",
  (score, best, value) => {
    expect(outcomeGain(score, best)).toBe(value);
  },
);

test.each([
  [1, 0],
  [2, 0.125],
  [3, 0.25],
  [4, 0.375],
  [5, 0.5],
  [undefined, 0],
])("Eq. 3: grade %s is worth %f", (grade, value) => {
  expect(processReward(grade)).toBe(value);
});

test("Eq. 1 has a tie with the process reward: <1,1> graded 5 equals <1,0> graded 1", () => {
  expect(outcomeGain(1, 1) + processReward(5)).toBe(outcomeGain(1, 0) + processReward(1));
});

test.each([
  [1, 1, 1.7],
  [2, 3, 1.3],
  [5, 10, 0],
  [5, 5, 0.5],
  [6, 30, 0],
  [0, 0, 2],
])(
  "Eq. 6: %i rounds with %i sub-queries leave %f, and beyond the caps more is free",
  (rounds, subQueries, value) => {
    expect(costReward({ rounds, subQueries }, caps)).toBeCloseTo(value, 12);
  },
);

test.each([
  [0, 1, 1, 0],
  [1, 1, 1, -1],
  [0, 0, 1, -1],
  [0, 1, 0, -1],
])("Eq. 8: %i invalid turns, %i rounds, %i calls earn %i", (invalidTurns, rounds, answerCalls, value) => {
  expect(formatPenalty({ invalidTurns, rounds, answerCalls })).toBe(value);
});

const options = (changed: Partial<PlannerRewardOptions> = {}) => plannerRewardSchema.parse(changed);

describe("the whole reward", () => {
  it.each([
    ["right where both were wrong, graded 3", { score: 1, grade: 3 }, 1.5 + 0.25 + 0.1 * 1.3],
    ["right like RAG", { score: 1, ragScore: 1, grade: 5 }, 1 + 0.5 + 0.1 * 1.3],
    ["right like the direct answer", { score: 1, directScore: 1 }, 1 + 0.1 * 1.3],
    ["wrong where RAG is right, graded 5", { score: 0, ragScore: 1, grade: 5 }, 0.5 + 0.1 * 1.3],
    ["wrong, no grade that could be read", { score: 0, isGradeUnreadable: true }, 0.5 + 0.1 * 1.3],
  ] as const)("is that of two rounds with three sub-queries: %s", (_, judged, value) => {
    const played = episode({ turns: [search("a", "b"), search("c"), call], judged });
    expect(plannerReward(played, options({ alpha: 0.1 })).value).toBeCloseTo(value, 12);
  });

  it("takes 1 off for an invalid turn, which is no round", () => {
    const played = episode({ turns: [invalid, search("a"), call], judged: { score: 1 } });
    expect(plannerReward(played, options({ alpha: 1 })).value).toBeCloseTo(1.5 + 1.7 - 1, 12);
  });

  it("takes 1 off for an answer without a search", () => {
    const played = episode({ turns: [call], judged: { score: 1, grade: 4 } });
    expect(plannerReward(played, options()).parts).toEqual({
      outcome: 1.5,
      process: 0.375,
      cost: 2,
      format: -1,
    });
  });

  it("pays neither cost nor process without a call of the generator, or doing nothing would earn 2 alpha", () => {
    const played = episode({ turns: [invalid], judged: { grade: 5 }, isCalled: false });
    expect(plannerReward(played, options({ alpha: 1 }))).toEqual({
      value: -0.5,
      parts: { outcome: 0.5, process: 0, cost: 0, format: -1 },
    });
  });

  it("counts a call that was forced as a call", () => {
    const played = episode({ turns: [search("a")], judged: { score: 1 } });
    expect(plannerReward(played, options()).parts.format).toBe(0);
  });

  it.each([
    ["gain", 1.5],
    ["score", 1],
    ["none", 0],
  ] as const)("has the outcome %s", (outcome, value) => {
    const played = episode({ turns: [search("a"), call], judged: { score: 1 } });
    expect(plannerReward(played, options({ outcome })).value).toBe(value);
  });
});
