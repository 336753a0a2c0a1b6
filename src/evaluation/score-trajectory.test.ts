import { expect, test } from "vitest";
import { makeQuestion, makeSegment, makeTrajectory } from "../../test/make-trajectory.ts";
import type { Turn } from "../environment/turn.ts";
import { deficiencyNames } from "../reward/deficiencies.ts";
import type { Trajectory } from "../rollout/trajectory.ts";
import { scoreTrajectory } from "./score-trajectory.ts";

function search(...ids: string[]): Turn {
  return {
    action: { type: "search", query: ids.join(" ") },
    passages: ids.map((id) => ({ passage: { id, title: `About ${id}`, text: `${id} is a city` }, score: 1 })),
  };
}

test("a trajectory is scored by its answer, its searches, its tokens and its time", () => {
  const question = makeQuestion({
    goldAnswers: ["Paris"],
    goldPassages: ["p1", "p2"],
    hops: 2,
    kind: "capital",
  });
  const turns = [
    search("p1", "x"),
    search("p1"),
    { action: { type: "answer", answer: "The Paris." } } as const,
  ];
  expect(scoreTrajectory(makeTrajectory({ question, turns, answer: "The Paris." }))).toMatchObject({
    dataset: "atlas",
    id: "q1",
    hops: 2,
    kind: "capital",
    stopReason: "answer",
    failed: false,
    answer: "The Paris.",
    em: 1,
    coverEm: 1,
    f1: 1,
    retrievalRecall: 0.5,
    answerRetrieved: 0,
    wellFormed: 1,
    searches: 2,
    policyTokens: 4,
    contextTokens: 9,
    timeMs: 20,
    ...Object.fromEntries(deficiencyNames.map((name) => [name, 0])),
  });
});

test("an answer that holds the gold answer among other words is covered but no exact match", () => {
  expect(scoreTrajectory(makeTrajectory({ answer: "Paris or Lyon" }))).toMatchObject({
    em: 0,
    coverEm: 1,
    f1: 0.5,
  });
});

test("a found passage with a gold answer counts as retrieved, whatever was answered", () => {
  const turns = [search("Paris")];
  const item = scoreTrajectory(makeTrajectory({ turns, answer: "Rome" }));
  expect(item).toMatchObject({ em: 0, answerRetrieved: 1 });
});

test("deficiencies of the searching are scored beside the answer", () => {
  const item = scoreTrajectory(makeTrajectory({ turns: [search("x"), search("x")], answer: "Paris" }));
  expect(item).toMatchObject({ em: 1, duplicateQuery: 1, anyDeficiency: 1, malformedAction: 0, noSearch: 0 });
});

test("retrieval recall is absent where a question marks no gold passages", () => {
  expect(scoreTrajectory(makeTrajectory())).not.toHaveProperty("retrievalRecall");
});

test("no answer scores 0, even for a gold answer that the prompt quotes", () => {
  const trajectory = makeTrajectory({
    question: makeQuestion({ goldAnswers: ["Beijing", "and"] }),
    segments: [makeSegment("prompt", [1])],
    turns: [],
    answer: undefined,
    stopReason: "contextLimit",
  });
  const item = scoreTrajectory(trajectory);
  expect(item).toMatchObject({ failed: false, em: 0, coverEm: 0, f1: 0, searches: 0, policyTokens: 0 });
  expect(item).not.toHaveProperty("answer");
});

test.each(["retrieverFailure", "policyFailure", "aborted"] as const)(
  "%s gives an item without scores",
  (stopReason) => {
    const item = scoreTrajectory(
      makeTrajectory({ stopReason, answer: undefined, failure: "connection refused" }),
    );
    expect(item).toEqual({
      dataset: "atlas",
      id: "q1",
      stopReason,
      failed: true,
      failure: "connection refused",
    });
  },
);

test("a ranker that could not be asked gives an item without scores, one that broke its grammar does not", () => {
  const ranking = (changes: Partial<Trajectory>): Trajectory =>
    makeTrajectory({ turns: [], answer: undefined, ...changes });
  const ranked = (...rankings: readonly Trajectory[]) => scoreTrajectory(makeTrajectory({ rankings }));
  const down = ranking({ stopReason: "policyFailure", failure: "no connection" });
  expect(ranked(ranking({ answer: "[1]" }), down)).toMatchObject({
    failed: true,
    stopReason: "policyFailure",
    failure: "ranking: no connection",
  });
  expect(ranked(ranking({ stopReason: "turnLimit" }))).toMatchObject({
    failed: false,
    em: 1,
    invalidRankings: 1,
  });
});

test("tokens of a ranker behind a server are those that the server counted", () => {
  const usage = { calls: 1, promptTokens: 30, cachedTokens: 0, completionTokens: 5, contextTokens: 35 };
  const rankings = [makeTrajectory({ segments: [{ source: "prompt", text: "rank", tokens: [] }], usage })];
  expect(scoreTrajectory(makeTrajectory({ rankings }))).toMatchObject({ rankerTokens: 35 });
});

test("a gold answer is retrieved in whole words, and words such as no count for nothing", () => {
  const found = (text: string): Turn => ({
    action: { type: "search", query: "q" },
    passages: [{ passage: { id: "p", title: "t", text }, score: 1 }],
  });
  const retrieved = (gold: string, text: string): number | undefined => {
    const item = scoreTrajectory(
      makeTrajectory({ question: makeQuestion({ goldAnswers: [gold] }), turns: [found(text)] }),
    );
    return item.failed ? undefined : item.answerRetrieved;
  };
  expect(retrieved("art", "a party")).toBe(0);
  expect(retrieved("art", "modern art.")).toBe(1);
  expect(retrieved("The", "the art of fugue")).toBe(0);
  expect(retrieved("no", "the north")).toBeUndefined();
  expect(retrieved("yes", "yes")).toBeUndefined();
});
