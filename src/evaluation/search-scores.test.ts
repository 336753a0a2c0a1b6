import { expect, it } from "vitest";
import { makeQuestion, makeSegment, makeTrajectory } from "../../test/make-trajectory.ts";
import { searchScores } from "./search-scores.ts";

const found = (...texts: readonly string[]) => ({
  action: { type: "search", query: "q" } as const,
  passages: texts.map((text, i) => ({ passage: { id: `${i}`, title: "T", text }, score: 1 })),
});
const answer = { action: { type: "answer", answer: "x" } } as const;

it("averages the hits of what each search showed", () => {
  const turns = [found("no", "Paris"), found("Paris"), answer];
  expect(searchScores(makeTrajectory({ turns }))).toEqual({ hit1: 1 / 2, hit3: 1, hit5: 1 });
});

it("has no hits without a search, and none for verdicts", () => {
  expect(searchScores(makeTrajectory({ turns: [answer] }))).toEqual({});
  const question = makeQuestion({ goldAnswers: ["yes"] });
  expect(searchScores(makeTrajectory({ question, turns: [found("yes"), answer] }))).toEqual({});
});

it("counts what ranking took, calls that gave nothing among them", () => {
  const ranking = makeTrajectory({
    segments: [makeSegment("prompt", [1, 2]), makeSegment("policy", [3])],
    answer: "[1]",
    time: { policyMs: 5, retrievalMs: 0, totalMs: 5 },
  });
  const rankings = [ranking, { ...ranking, answer: undefined }];
  expect(searchScores(makeTrajectory({ turns: [answer], rankings }))).toEqual({
    rankings: 2,
    invalidRankings: 1 / 2,
    rankerTokens: 6,
    rankerMs: 10,
  });
});
