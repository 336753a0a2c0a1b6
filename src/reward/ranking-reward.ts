/**
 * The reward of CoSearch's ranker for one call (arXiv 2604.17555, section 3.4, Eq. 6). With the pseudo-label "holds a
 * gold answer" (`corpus/answer-match.ts`), r_rel the mean of Hit@1, Hit@3 and Hit@5 of what was shown, r_main the reward
 * of the agent's whole trajectory, and I whether any candidate is relevant:
 *
 *   ranking ill-formed        -penalty
 *   I = 0                     r_main
 *   I = 1, r_rel <= gamma     r_rel
 *   I = 1, r_rel >  gamma     r_rel + r_main
 *
 * The released code has gamma 0.8 with >= for >, and counts r_main as 1 from a token F1 of 0.8 on, else 0; it keeps the
 * calls of agents whose own format was wrong, with r_main 0, which the paper leaves out. Each is an option.
 */
import { z } from "zod";
import { answerMatcher, isVerdict } from "../corpus/answer-match.ts";
import { assert } from "../errors.ts";
import type { ScoredPassage } from "../retrieval/retriever.ts";
import { chosenPassages } from "../rollout/ranked-search.ts";
import type { Trajectory } from "../rollout/trajectory.ts";
import { isWellFormed, penaltyDoc, turnFormatDoc, turnFormatSchema } from "./outcome-reward.ts";
import { tokenF1 } from "./token-f1.ts";

export const rankingRewardSchema = z.strictObject({
  combine: z
    .enum(["gated", "relevance", "answer", "max", "judge"])
    .default("gated")
    .describe(
      "What a ranking earns: `gated` as in Eq. 6; the ablations `relevance` (without the agent's reward) and `answer` (without relevance) and `judge` (what `ranker.judge` gives it, 0 to 1); `max` the greater of r_rel and r_main.",
    ),
  relevance: z
    .enum(["hits", "ndcg"])
    .default("hits")
    .describe(
      "`hits`: mean of Hit@1, Hit@3 and Hit@5; `ndcg`: binary nDCG of what was shown, at most 5 (an ablation).",
    ),
  gamma: z
    .number()
    .min(0)
    .max(1)
    .default(0.5)
    .describe(
      "Relevance above which the agent's reward is added, 0 to 1; 0.5 in the paper, 0.8 as released.",
    ),
  gammaIncluded: z
    .boolean()
    .default(false)
    .describe("True: a relevance of exactly gamma is enough, as released."),
  answerThreshold: z
    .number()
    .gt(0)
    .max(1)
    .optional()
    .describe(
      "Token F1 from which on the agent's reward counts as 1, else 0; 0.8 as released; absent: the F1 itself, as in the paper.",
    ),
  penalty: z.number().min(0).max(1).default(0.2).describe(penaltyDoc),
  agentFormat: turnFormatSchema.describe(turnFormatDoc),
  keepIllFormedAgents: z
    .boolean()
    .default(false)
    .describe(
      "Whether the ranker also learns from trajectories whose agent broke its format, with an agent's reward of 0, as released.",
    ),
  skipVerdicts: z
    .boolean()
    .default(true)
    .describe(
      "Whether no passage counts as relevant to a question whose answers are all yes, no, true or false, as released; the paper does not say.",
    ),
});

export type RankingRewardOptions = z.output<typeof rankingRewardSchema>;

/** The cutoffs of the hits. */
export const hitCutoffs = [1, 3, 5] as const;

export interface RankingJudgement {
  readonly value: number;
  readonly isValid: boolean;
  /** Whether any candidate holds a gold answer. */
  readonly isAnswerable: boolean;
  /** Of what the agent was shown, the retriever's own best where the ranking is invalid; 0 or 1 for each of `hitCutoffs`. */
  readonly hits: readonly number[];
  /** r_rel, of a valid ranking; else 0. */
  readonly relevance: number;
}

/** Whether the ranker is to learn from the calls of an agent's trajectory. */
export function isLearntFrom(agent: Trajectory, options: RankingRewardOptions): boolean {
  return options.keepIllFormedAgents || isWellFormed(agent, options.agentFormat);
}

/** What one call of the ranker within `agent` earned, in [-penalty, 2]. The ranker did not fail. */
export function rankingReward(
  ranking: Trajectory,
  agent: Trajectory,
  options: RankingRewardOptions,
): RankingJudgement {
  const { goldAnswers } = agent.question;
  const isSkipped = options.skipVerdicts && isVerdict(goldAnswers);
  const holds = answerMatcher(isSkipped ? [] : goldAnswers);
  const candidates = ranking.turns[0]?.passages ?? [];
  const isAnswerable = candidates.some(({ passage }) => holds(passage));
  const chosen = chosenPassages(ranking);
  const shown = chosen ?? candidates.slice(0, ranking.ranking?.count);
  const hits = hitsAt(shown, holds);
  const isValid = chosen !== undefined;
  const relevance = isValid ? relevanceOf({ shown, candidates, hits, holds }, options) : 0;
  const outcome = isWellFormed(agent, options.agentFormat) ? tokenF1(agent.answer, goldAnswers) : 0;
  const { answerThreshold: threshold } = options;
  const answer = threshold === undefined ? outcome : Number(outcome >= threshold);
  const grade = ranking.ranking?.grade;
  const value = isValid ? combined({ relevance, answer, isAnswerable, grade }, options) : -options.penalty;
  return { value, isValid, isAnswerable, hits, relevance };
}

type Holds = (passage: ScoredPassage["passage"]) => boolean;

/** For each of `hitCutoffs` whether one of the first so many passages is relevant, as 0 or 1. */
export function hitsAt(shown: readonly ScoredPassage[], holds: Holds): number[] {
  const rank = shown.findIndex(({ passage }) => holds(passage)) + 1;
  return hitCutoffs.map((cutoff) => Number(rank > 0 && rank <= cutoff));
}

function relevanceOf(
  found: {
    readonly shown: readonly ScoredPassage[];
    readonly candidates: readonly ScoredPassage[];
    readonly hits: readonly number[];
    readonly holds: Holds;
  },
  { relevance }: RankingRewardOptions,
): number {
  const { shown, candidates, hits, holds } = found;
  if (relevance === "hits") return hits.reduce((sum, hit) => sum + hit, 0) / hits.length;
  const depth = Math.min(5, shown.length);
  const gains = shown.slice(0, depth).map(({ passage }) => Number(holds(passage)));
  const relevant = candidates.filter(({ passage }) => holds(passage)).length;
  const ideal = discounted(Array.from({ length: Math.min(depth, relevant) }, () => 1));
  return ideal === 0 ? 0 : discounted(gains) / ideal;
}

function discounted(gains: readonly number[]): number {
  return gains.reduce((sum, gain, i) => sum + gain / Math.log2(i + 2), 0);
}

function combined(
  parts: {
    readonly relevance: number;
    readonly answer: number;
    readonly isAnswerable: boolean;
    readonly grade: number | undefined;
  },
  { combine, gamma, gammaIncluded }: RankingRewardOptions,
): number {
  const { relevance, answer, isAnswerable, grade } = parts;
  if (combine === "judge") {
    assert(grade !== undefined, "a ranking is graded before it is rewarded by its judge");
    return grade;
  }
  if (combine === "relevance") return relevance;
  if (combine === "answer") return answer;
  if (combine === "max") return Math.max(relevance, answer);
  if (!isAnswerable) return answer;
  const isEnough = gammaIncluded ? relevance >= gamma : relevance > gamma;
  return isEnough ? relevance + answer : relevance;
}
