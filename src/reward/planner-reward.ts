/**
 * The reward of a search planner (AI-SearchPlanner, arXiv 2508.20368, Eq. 1-8): what the planning gained over the
 * generator without it, how sensible it was, what it cost, and whether both tools were used as they should be.
 *
 *   outcome  = 0.5 + Score(a) - 0.5 max(Score(a_direct), Score(a_rag))                           Eq. 2
 *   process  = 0.5 (grade - 1) / 4, the grade from 1 to 5; 0 where it cannot be read             Eq. 3
 *   utility  = outcome + process                                                                 Eq. 4
 *   cost     = max(0, 1 - rounds / M_t) + max(0, 1 - sub-queries / M_q)                          Eq. 6
 *   pareto   = utility + alpha cost                                                              Eq. 7
 *   format   = 0 where every turn was a valid action, one searched and the generator was called; else -1   Eq. 8
 *
 * The reward is pareto + format. Without a call of the generator there is no answer: score, process and cost are 0, or
 * an episode that does nothing would earn 2 alpha. The paper says neither how both are put together nor how a grade
 * becomes a reward.
 */
import { z } from "zod";
import { assert } from "../errors.ts";
import type { Trajectory } from "../rollout/trajectory.ts";
import { invalidTurnCount, queries, searchCount } from "../rollout/trajectory-view.ts";

export const plannerOutcomes = ["gain", "score", "none"] as const;

/** Fields of the reward itself. */
export const plannerRewardFields = {
  alpha: z
    .number()
    .min(0)
    .default(0)
    .describe(
      "Weight of the cost term against utility (Eq. 7); the paper sweeps 0, 0.005, 0.05, 0.125, 0.25.",
    ),
  outcome: z
    .enum(plannerOutcomes)
    .default("gain")
    .describe(
      "`gain`: the answer's score set against the generator's own answers (Eq. 2), which within a group is a constant; `score`: the answer's score alone; `none`: without it, as an ablation.",
    ),
  roundCap: z
    .int()
    .min(1)
    .default(5)
    .describe("M_t of the cost term: rounds from which on more cost nothing."),
  subQueryCap: z
    .int()
    .min(1)
    .default(10)
    .describe("M_q of the cost term: sub-queries from which on more cost nothing."),
};

export const plannerRewardSchema = z.strictObject(plannerRewardFields);
export type PlannerRewardOptions = z.output<typeof plannerRewardSchema>;

/** Eq. 2: 1.5, 1, 0.5 or 0, in the order of Eq. 1: right where it was wrong without, both right, both wrong, only right without. */
export function outcomeGain(score: 0 | 1, baseline: 0 | 1): number {
  return 0.5 + score - 0.5 * baseline;
}

/** Eq. 3: a grade from 1 to 5 as 0, 0.125, 0.25, 0.375 or 0.5; 0 without one. */
export function processReward(grade: number | undefined): number {
  return grade === undefined ? 0 : (0.5 * (grade - 1)) / 4;
}

/** Eq. 6, from 0 to 2: what was left of both allowances. */
export function costReward(
  used: { readonly rounds: number; readonly subQueries: number },
  { roundCap, subQueryCap }: Pick<PlannerRewardOptions, "roundCap" | "subQueryCap">,
): number {
  return Math.max(0, 1 - used.rounds / roundCap) + Math.max(0, 1 - used.subQueries / subQueryCap);
}

/** Eq. 8: 0 or -1. */
export function formatPenalty(episode: {
  readonly invalidTurns: number;
  readonly rounds: number;
  readonly answerCalls: number;
}): 0 | -1 {
  return episode.invalidTurns === 0 && episode.rounds >= 1 && episode.answerCalls >= 1 ? 0 : -1;
}

export interface PlannerReward {
  readonly value: number;
  readonly parts: {
    readonly outcome: number;
    readonly process: number;
    readonly cost: number;
    readonly format: number;
  };
}

/**
 * The reward of an episode that was judged, from -1 to 2 + 2 alpha. A call that the environment made after the last round
 * counts as a call: the cost term, not the format, is what teaches to stop.
 */
export function plannerReward(trajectory: Trajectory, options: PlannerRewardOptions): PlannerReward {
  const { assessment, generated } = trajectory;
  assert(assessment !== undefined, "an episode of a planner is judged before it is rewarded");
  const rounds = searchCount(trajectory);
  const isCalled = generated !== undefined;
  const { score, directScore, ragScore, grade } = assessment;
  const gain = (): number => {
    assert(directScore !== undefined && ragScore !== undefined, "a gain is over the generator's own answers");
    return outcomeGain(score, Math.max(directScore, ragScore) as 0 | 1);
  };
  const parts = {
    outcome: options.outcome === "gain" ? gain() : options.outcome === "score" ? score : 0,
    process: isCalled ? processReward(grade) : 0,
    cost: isCalled ? costReward({ rounds, subQueries: queries(trajectory).length }, options) : 0,
    format: formatPenalty({
      invalidTurns: invalidTurnCount(trajectory),
      rounds,
      answerCalls: isCalled ? 1 : 0,
    }),
  };
  return { value: parts.outcome + parts.process + options.alpha * parts.cost + parts.format, parts };
}
