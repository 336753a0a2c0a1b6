/**
 * The reward of a finished trajectory: a pure function of what the policy did, the passages it saw and the gold
 * answers. It never reads the prompt, so an episode without an answer earns nothing, whatever the prompt quotes.
 */
import { z } from "zod";
import { isInfrastructureFailure } from "../environment/stop-reason.ts";
import { assert } from "../errors.ts";
import type { Trajectory } from "../rollout/trajectory.ts";
import { citationF1, hasAbstained } from "./citations.ts";
import { coverExactMatch } from "./cover-exact-match.ts";
import { releasedFlagCount } from "./deficiencies.ts";
import { exactMatch } from "./exact-match.ts";
import { formatReward } from "./format-reward.ts";
import { formatF1, penaltyDoc, turnFormatDoc, turnFormatSchema } from "./outcome-reward.ts";
import { type PlannerRewardOptions, plannerReward } from "./planner-reward.ts";
import { answerMatchFields, retrievalAccuracy, retrievalRecall } from "./retrieved-answer.ts";
import { tokenF1 } from "./token-f1.ts";

const credit = z.number().min(0).max(1);

const singleRewardSchema = z.discriminatedUnion("type", [
  z.strictObject({
    type: z
      .literal("exactMatch")
      .describe("1 when the answer equals a gold answer after normalisation, else 0."),
  }),
  z.strictObject({
    type: z.literal("coverExactMatch").describe("1 when the answer contains a gold answer, else 0."),
  }),
  z.strictObject({
    type: z.literal("tokenF1").describe("Overlap of words with the best gold answer, 0 to 1."),
  }),
  z.strictObject({
    type: z
      .literal("formatF1")
      .describe("Token F1 after well-formed turns, else a penalty (CoSearch's agent, Eq. 4)."),
    format: turnFormatSchema.describe(turnFormatDoc),
    penalty: credit.default(0.2).describe(penaltyDoc),
  }),
  z.strictObject({
    type: z
      .literal("format")
      .describe("Exact match with partial credit for well-formed turns (Search-R1 v0.3)."),
    structure: credit
      .default(0.2)
      .describe(
        "Credit for well-formed turns with a wrong answer; taken off a right answer in ill-formed ones.",
      ),
    finalFormat: credit.default(0.1).describe("Credit for a wrong answer after ill-formed turns."),
    retrieval: credit
      .default(0)
      .describe("Extra credit for well-formed turns that retrieved a gold answer without giving it."),
  }),
  z.strictObject({
    type: z
      .literal("retrievalRecall")
      .describe(
        "1 when a passage that a search showed holds a gold answer, else 0, whatever is answered (DeSA, stage 1).",
      ),
    ...answerMatchFields,
    deficiencyPenalty: credit
      .default(0)
      .describe(
        "Taken off for each flag of the released detector of deficiencies (docs/algorithms/desa.md), down to 0; 0.2 in DeSA's ablation.",
      ),
  }),
  z.strictObject({
    type: z
      .literal("citations")
      .describe(
        "Harmonic mean of precision and recall of the passages that the answer cites (codec evidence), 0 to 1; 0 for an abstention.",
      ),
  }),
  z.strictObject({
    type: z
      .literal("abstention")
      .describe("Exact match, with a credit for saying that the answer is not known (codec evidence)."),
    credit: credit
      .default(0.3)
      .describe(
        "For an abstention, between a wrong answer (0) and a right one (1): answering pays where the answer is right more often than this.",
      ),
  }),
  z.strictObject({
    type: z
      .literal("retrievalAccuracy")
      .describe("Share of the passages shown by searches that hold a gold answer (DeSA's ablation)."),
    ...answerMatchFields,
  }),
]);

export const rewardOptionsSchema = z.discriminatedUnion("type", [
  ...singleRewardSchema.options,
  z.strictObject({
    type: z
      .literal("planner")
      .describe(
        "What planning gained, how sensible it was and what it cost (AI-SearchPlanner), as `planner` of the recipe says; mode planner alone.",
      ),
  }),
  z.strictObject({
    type: z
      .literal("mixture")
      .describe("Weighted sum of rewards; DeSA's single-stage control is half recall, half exact match."),
    parts: z
      .array(
        z.strictObject({
          weight: z.number().positive().describe("Its value is multiplied by this."),
          reward: singleRewardSchema.describe("Any reward but a mixture."),
        }),
      )
      .min(1)
      .describe("What is added up."),
  }),
]);

export type RewardOptions = z.infer<typeof rewardOptionsSchema>;
/** What the reward `planner` needs to know. */
export type { PlannerRewardOptions } from "./planner-reward.ts";

type SingleRewardOptions = z.infer<typeof singleRewardSchema>;

export interface Reward {
  readonly value: number;
  /** What the value was made of, for metrics. */
  readonly parts: Readonly<Record<string, number>>;
}

/**
 * The reward: in [0, 1], of a mixture in [0, sum of its weights], of a planner as `plannerReward` says. A trajectory that the world broke off has none: asking
 * for it is a defect of the caller.
 */
export function reward(
  trajectory: Trajectory,
  options: RewardOptions,
  planner?: PlannerRewardOptions,
): Reward {
  assert(
    !isInfrastructureFailure(trajectory.stopReason),
    `a trajectory that ended with ${trajectory.stopReason} has no reward`,
  );
  if (options.type === "planner") {
    assert(planner !== undefined, "the reward planner needs the options of the planner");
    return plannerReward(trajectory, planner);
  }
  return options.type === "mixture" ? mixture(trajectory, options) : singleReward(trajectory, options);
}

function mixture(
  trajectory: Trajectory,
  { parts }: Extract<RewardOptions, { readonly type: "mixture" }>,
): Reward {
  const rewards = parts.map((part) => ({ ...singleReward(trajectory, part.reward), weight: part.weight }));
  return {
    value: rewards.reduce((sum, { value, weight }) => sum + weight * value, 0),
    parts: Object.assign({}, ...rewards.map((part) => part.parts)) as Reward["parts"],
  };
}

function singleReward(trajectory: Trajectory, options: SingleRewardOptions): Reward {
  const { answer, question } = trajectory;
  switch (options.type) {
    case "exactMatch":
      return single("exactMatch", exactMatch(answer, question.goldAnswers));
    case "coverExactMatch":
      return single("coverExactMatch", coverExactMatch(answer, question.goldAnswers));
    case "tokenF1":
      return single("tokenF1", tokenF1(answer, question.goldAnswers));
    case "formatF1": {
      const { value, f1, isWellFormed } = formatF1(trajectory, options);
      return { value, parts: { tokenF1: f1, wellFormed: Number(isWellFormed) } };
    }
    case "format": {
      const { value, isCorrect, isWellFormed, isRetrieved } = formatReward(trajectory, options);
      const parts = {
        exactMatch: Number(isCorrect),
        wellFormed: Number(isWellFormed),
        answerRetrieved: Number(isRetrieved),
      };
      return { value, parts };
    }
    case "retrievalRecall": {
      const recall = retrievalRecall(trajectory, options);
      const value = Math.max(0, recall - options.deficiencyPenalty * releasedFlagCount(trajectory));
      return { value, parts: { retrievalRecall: recall } };
    }
    case "citations":
      return single("citationF1", citationF1(trajectory));
    case "abstention": {
      const abstained = hasAbstained(trajectory);
      const right = exactMatch(answer, question.goldAnswers);
      return {
        value: abstained ? options.credit : right,
        parts: { exactMatch: abstained ? 0 : right, abstained: Number(abstained) },
      };
    }
    case "retrievalAccuracy":
      return single("retrievalAccuracy", retrievalAccuracy(trajectory, options));
  }
}

function single(name: string, value: number): Reward {
  return { value, parts: { [name]: value } };
}
