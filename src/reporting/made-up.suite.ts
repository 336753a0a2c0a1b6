/** Small made-up values for the tests of this room. */
import type { Trajectory } from "../rollout/trajectory.ts";
import type { TrajectoryRecord } from "./trajectory-record.ts";

/** A two-hop episode: search, observation, answer. */
export function makeTrajectory(changes: Partial<Trajectory> = {}): Trajectory {
  const passage = { id: "p1", title: "Ostburg", text: "Ostburg is a town on the River Aln, in the north." };
  return {
    question: {
      id: "1",
      dataset: "lab",
      text: "Which river flows through Ostburg?",
      goldAnswers: ["River Aln"],
      goldPassages: ["p1"],
      hops: 1,
    },
    group: "lab/1",
    sample: 0,
    segments: [
      { source: "prompt", text: "Question: Which river flows through Ostburg?\n", tokens: [1, 2, 3] },
      { source: "policy", text: "<search> Ostburg </search>", tokens: [4, 5], logprobs: [-0.5, -0.25] },
      {
        source: "environment",
        text: `\n<information>Doc 1(Title: "Ostburg") ${passage.text}</information>\n`,
        tokens: [6, 7, 8],
      },
      { source: "policy", text: "<answer> River Aln </answer>", tokens: [9], logprobs: [-0.125] },
    ],
    turns: [
      { action: { type: "search", query: "Ostburg" }, passages: [{ passage, score: 3.5 }] },
      { action: { type: "answer", answer: "River Aln" } },
    ],
    answer: "River Aln",
    stopReason: "answer",
    time: { policyMs: 10, retrievalMs: 1, totalMs: 12 },
    ...changes,
  };
}

export function makeRecord(changes: Partial<TrajectoryRecord> = {}): TrajectoryRecord {
  return { stage: "grpo", step: 1, trajectory: makeTrajectory(), ...changes };
}
