/** Trajectories for tests, from as little as a test cares about. */
import type { Question } from "../src/corpus/question.ts";
import type { Segment, Trajectory } from "../src/rollout/trajectory.ts";

export function makeQuestion(changes: Partial<Question> = {}): Question {
  return {
    id: "q1",
    dataset: "atlas",
    text: "What is the capital of France?",
    goldAnswers: ["Paris"],
    goldPassages: [],
    ...changes,
  };
}

/** A segment of `tokens`; policy segments get the log-probabilities -0.5, -1, -1.5, ... unless some are given. */
export function makeSegment(
  source: Segment["source"],
  tokens: readonly number[],
  logprobs = tokens.map((_, i) => -(i + 1) / 2),
): Segment {
  return { source, text: tokens.join(" "), tokens, ...(source === "policy" && { logprobs }) };
}

/** Prompt of 3 tokens, a search of 2, an observation of 2, an answer of 2. */
export function makeTrajectory(changes: Partial<Trajectory> = {}): Trajectory {
  return {
    question: makeQuestion(),
    group: "g1",
    sample: 0,
    segments: [
      makeSegment("prompt", [1, 2, 3]),
      makeSegment("policy", [4, 5]),
      makeSegment("environment", [6, 7]),
      makeSegment("policy", [8, 9]),
    ],
    turns: [
      { action: { type: "search", query: "France" }, passages: [] },
      { action: { type: "answer", answer: "Paris" } },
    ],
    answer: "Paris",
    stopReason: "answer",
    time: { policyMs: 10, retrievalMs: 5, totalMs: 20 },
    ...changes,
  };
}
