/**
 * The reward of a finished trajectory: a pure function of what the policy did, the passages it saw and the gold
 * answers. It never reads the prompt, so an episode without an answer earns nothing, whatever the prompt quotes.
 */
import { z } from "zod";
import { isInfrastructureFailure } from "../environment/stop-reason.ts";
import { assert } from "../errors.ts";
import type { Trajectory } from "../rollout/trajectory.ts";
import { coverExactMatch } from "./cover-exact-match.ts";
import { exactMatch } from "./exact-match.ts";
import { formatReward } from "./format-reward.ts";
import { tokenF1 } from "./token-f1.ts";

const credit = z.number().min(0).max(1);

export const rewardOptionsSchema = z.discriminatedUnion("type", [
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
]);

export type RewardOptions = z.infer<typeof rewardOptionsSchema>;

export interface Reward {
  readonly value: number;
  /** What the value was made of, for metrics. */
  readonly parts: Readonly<Record<string, number>>;
}

/** The reward in [0, 1]. A trajectory that the world broke off has none: asking for it is a defect of the caller. */
export function reward(trajectory: Trajectory, options: RewardOptions): Reward {
  assert(
    !isInfrastructureFailure(trajectory.stopReason),
    `a trajectory that ended with ${trajectory.stopReason} has no reward`,
  );
  const { answer, question } = trajectory;
  switch (options.type) {
    case "exactMatch":
      return single("exactMatch", exactMatch(answer, question.goldAnswers));
    case "coverExactMatch":
      return single("coverExactMatch", coverExactMatch(answer, question.goldAnswers));
    case "tokenF1":
      return single("tokenF1", tokenF1(answer, question.goldAnswers));
    case "format": {
      const { value, isCorrect, isWellFormed, isRetrieved } = formatReward(trajectory, options);
      const parts = {
        exactMatch: Number(isCorrect),
        wellFormed: Number(isWellFormed),
        answerRetrieved: Number(isRetrieved),
      };
      return { value, parts };
    }
  }
}

function single(name: string, value: number): Reward {
  return { value, parts: { [name]: value } };
}
