/** Episodes of a planner that were judged, for tests of its reward. */
import type { Action } from "../environment/action.ts";
import type { Assessment, Trajectory } from "../rollout/trajectory.ts";
import { noUsage } from "../rollout/usage.ts";

export interface Episode {
  readonly turns: readonly Action[];
  readonly judged: Partial<Assessment>;
  readonly isCalled?: boolean;
}

export const search = (...queries: string[]): Action => ({ type: "searches", queries });
export const call: Action = { type: "callGenerator" };
export const invalid: Action = { type: "invalid", reason: "noAction" };

/** An episode of these actions, as judges found it; scores that are not given are 0. */
export function episode({ turns, judged, isCalled = true }: Episode): Trajectory {
  return {
    question: { id: "1", dataset: "d", text: "q?", goldAnswers: ["a"], goldPassages: [] },
    group: "g",
    sample: 0,
    segments: [],
    turns: turns.map((action) => ({ action, ...(action.type === "searches" && { passages: [] }) })),
    answer: isCalled ? "a" : undefined,
    stopReason: isCalled ? "answer" : "contextLimit",
    ...(isCalled && { generated: { answer: "a", isForced: false, usage: noUsage, ms: 0 } }),
    assessment: {
      score: 0,
      ruleScore: 0,
      directScore: 0,
      ragScore: 0,
      unreadable: 0,
      judged: 0,
      usage: noUsage,
      ...judged,
    },
    time: { policyMs: 0, retrievalMs: 0, totalMs: 0 },
  };
}
