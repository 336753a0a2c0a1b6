import { describe, expect, it } from "vitest";
import { makeQuestion, makeSegment, makeTrajectory } from "../../test/make-trajectory.ts";
import { renderOrder } from "../environment/ranking-codec.ts";
import type { Trajectory } from "../rollout/trajectory.ts";
import { isLearntFrom, rankingReward, rankingRewardSchema } from "./ranking-reward.ts";

const question = makeQuestion({ goldAnswers: ["bo lee"] });
const passage = (text: string, index: number) => ({
  passage: { id: `${index}`, title: "T", text },
  score: 1 / (index + 1),
});

/** A call for five of ten candidates, of which those numbered in `relevant` hold the answer. */
function rankingOf(relevant: readonly number[], order: readonly number[] | undefined): Trajectory {
  const candidates = Array.from({ length: 10 }, (_, i) =>
    passage(relevant.includes(i + 1) ? "it is Bo Lee ." : "it is not .", i),
  );
  const answer = order && renderOrder(order);
  return makeTrajectory({
    question,
    answer,
    stopReason: answer === undefined ? "turnLimit" : "answer",
    segments: [makeSegment("prompt", [1]), makeSegment("policy", [2])],
    turns: [
      {
        action: answer === undefined ? { type: "invalid", reason: "malformed" } : { type: "answer", answer },
        passages: candidates,
      },
    ],
    ranking: { turn: 0, place: 0, query: "bo", count: 5 },
  });
}

/** Token F1 with "bo lee": 1 for it, 2/3 for "bo", 0 for "x", 0.8 for "bo lee x". */
function agentOf(answer: string | undefined, isSound = true): Trajectory {
  return makeTrajectory({
    question,
    answer,
    turns: [
      { action: { type: "search", query: "bo" }, passages: [] },
      ...(isSound ? [] : [{ action: { type: "invalid", reason: "noAction" } } as const]),
      { action: { type: "answer", answer: answer ?? "" } },
    ],
  });
}

const paper = { agentFormat: "actions" } as const;
const released = {
  ...paper,
  gamma: 0.8,
  gammaIncluded: true,
  answerThreshold: 0.8,
  keepIllFormedAgents: true,
} as const;
const judge = (
  relevant: readonly number[],
  order: readonly number[] | undefined,
  answer: string,
  options: object = {},
) =>
  rankingReward(
    rankingOf(relevant, order),
    agentOf(answer),
    rankingRewardSchema.parse({ ...paper, ...options }),
  );

// Worked by hand from Eq. 6 and from the released scorer; candidate 7 alone is relevant unless said otherwise.
describe("the reward of a ranking", () => {
  it.each([
    // relevant at rank, F1, paper, released
    ["1, right answer", [7], [7, 1, 2, 3, 4], "bo lee", 2, 2],
    ["1, half right", [7], [7, 1, 2, 3, 4], "bo", 1 + 2 / 3, 1],
    ["1, F1 of exactly 0.8", [7], [7, 1, 2, 3, 4], "bo lee x", 1.8, 2],
    ["1, wrong answer", [7], [7, 1, 2, 3, 4], "x", 1, 1],
    ["2, right answer", [7], [1, 7, 2, 3, 4], "bo lee", 2 / 3 + 1, 2 / 3],
    ["3, half right", [7], [1, 2, 7, 3, 4], "bo", 2 / 3 + 2 / 3, 2 / 3],
    ["4, right answer", [7], [1, 2, 3, 7, 4], "bo lee", 1 / 3, 1 / 3],
    ["5, right answer", [7], [1, 2, 3, 4, 7], "bo lee", 1 / 3, 1 / 3],
    ["none, right answer", [7], [1, 2, 3, 4, 5], "bo lee", 0, 0],
    ["none relevant at all, right answer", [], [1, 2, 3, 4, 5], "bo lee", 1, 1],
    ["none relevant at all, half right", [], [1, 2, 3, 4, 5], "bo", 2 / 3, 0],
    ["none relevant at all, wrong answer", [], [1, 2, 3, 4, 5], "x", 0, 0],
    ["an invalid ranking, right answer", [7], undefined, "bo lee", -0.2, -0.2],
    ["an invalid ranking, none relevant", [], undefined, "bo lee", -0.2, -0.2],
  ] as const)("relevant at rank %s", (_, relevant, order, answer, inPaper, asReleased) => {
    expect(judge(relevant, order, answer).value).toBeCloseTo(inPaper, 12);
    expect(judge(relevant, order, answer, released).value).toBeCloseTo(asReleased, 12);
  });

  it("has the ablations without one of its parts", () => {
    const order = [1, 7, 2, 3, 4];
    expect(judge([7], order, "bo lee", { combine: "relevance" }).value).toBeCloseTo(2 / 3, 12);
    expect(judge([7], order, "bo", { combine: "answer" }).value).toBeCloseTo(2 / 3, 12);
    expect(judge([7], order, "bo lee", { combine: "max" }).value).toBe(1);
    expect(judge([], order, "bo lee", { combine: "relevance" }).value).toBe(0);
    expect(judge([7], undefined, "bo lee", { combine: "answer" }).value).toBe(-0.2);
  });

  it("computes binary nDCG against all relevant candidates", () => {
    const given = { combine: "relevance", relevance: "ndcg" } as const;
    expect(judge([7], [1, 7, 2, 3, 4], "x", given).value).toBeCloseTo(1 / Math.log2(3), 12);
    // Two of three relevant ones, at ranks 1 and 3; the ideal has three.
    const ideal = 1 + 1 / Math.log2(3) + 1 / 2;
    expect(judge([7, 8, 9], [7, 1, 8, 2, 3], "x", given).value).toBeCloseTo((1 + 1 / 2) / ideal, 12);
    expect(judge([7], [1, 2, 3, 4, 5], "x", given).value).toBe(0);
  });

  it("tells hits of what was shown, the retriever's best where the ranking is invalid", () => {
    expect(judge([7], [1, 7, 2, 3, 4], "x").hits).toEqual([0, 1, 1]);
    expect(judge([4], undefined, "x").hits).toEqual([0, 0, 1]);
    expect(judge([7], undefined, "x")).toMatchObject({ hits: [0, 0, 0], relevance: 0, isAnswerable: true });
  });

  it("finds nothing relevant to verdicts unless asked to", () => {
    const asks = (skipVerdicts: boolean) => {
      const verdict = { ...rankingOf([], [1, 2, 3, 4, 5]), question: makeQuestion({ goldAnswers: ["no"] }) };
      const found = {
        ...verdict,
        turns: [{ ...verdict.turns[0], passages: [0, 1, 2, 3, 4].map((i) => passage("no", i)) }],
      } as Trajectory;
      const agent = { ...agentOf("no"), question: found.question };
      return rankingReward(found, agent, rankingRewardSchema.parse({ ...paper, skipVerdicts })).isAnswerable;
    };
    expect(asks(true)).toBe(false);
    expect(asks(false)).toBe(true);
  });

  it("leaves out trajectories whose agent broke its format, or counts their answer as nothing", () => {
    const options = rankingRewardSchema.parse(paper);
    expect(isLearntFrom(agentOf("bo lee"), options)).toBe(true);
    expect(isLearntFrom(agentOf("bo lee", false), options)).toBe(false);
    const keeping = rankingRewardSchema.parse(released);
    expect(isLearntFrom(agentOf("bo lee", false), keeping)).toBe(true);
    const ranking = rankingOf([7], [7, 1, 2, 3, 4]);
    expect(rankingReward(ranking, agentOf("bo lee", false), keeping).value).toBe(1);
  });
});
