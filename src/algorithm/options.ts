/**
 * Options of the algorithm: how rewards become a loss. The defaults are GRPO as Search-R1 trains it, with clip-higher;
 * `type: ppo` compares with a critic's values instead of a group.
 */
import { z } from "zod";
import { defaultType } from "../shared/default-type.ts";
import { gaeOptionsSchema } from "./gae.ts";
import type { Loss, ValueLoss } from "./loss.ts";
import { scheduleOptionsSchema } from "./schedule.ts";

/** What all algorithms have in common. */
const common = {
  clipLow: z
    .number()
    .gt(0)
    .lt(1)
    .default(0.2)
    .describe("A probability ratio below 1 - clipLow earns no further gradient, 0 to 1."),
  clipHigh: z
    .number()
    .gt(0)
    .default(0.28)
    .describe(
      "A probability ratio above 1 + clipHigh earns no further gradient; larger than clipLow keeps exploring (DAPO).",
    ),
  minibatchSize: z
    .int()
    .min(1)
    .optional()
    .describe("Most trajectories for one optimiser update; absent: one update with all of them."),
  epochs: z.int().min(1).default(1).describe("How often each batch of trajectories is trained on."),
  maskRetrieved: z
    .boolean()
    .default(true)
    .describe("Train only on tokens the policy wrote; false trains on retrieved text too (an ablation)."),
  lossNormalization: z
    .union([
      z.literal("token"),
      z.literal("sequence"),
      z.strictObject({
        constantTokens: z.int().min(1).describe("Tokens each trajectory counts for, whatever its length."),
      }),
    ])
    .default("token")
    .describe(
      "Mean over all trained tokens, over trajectories, or a constant number of tokens for each trajectory.",
    ),
};

const klCoefficient = z.number().positive();

const grpoOptionsSchema = z.strictObject({
  type: defaultType("grpo").describe(
    "Compares each trajectory with the others of its question; no critic (docs/algorithms/grpo.md).",
  ),
  groupSize: z
    .int()
    .min(1)
    .default(8)
    .describe("Trajectories for each question; 1 is REINFORCE without a baseline."),
  advantage: z
    .strictObject({
      normalize: z
        .enum(["std", "none"])
        .default("std")
        .describe(
          "std: divide by the standard deviation of the group (GRPO); none: only subtract the mean (Dr. GRPO).",
        ),
    })
    .prefault({})
    .describe("How the advantage of a trajectory is computed from the rewards of its group."),
  kl: z
    .strictObject({
      estimator: z
        .enum(["k1", "k3"])
        .default("k3")
        .describe("Estimator of the divergence for each token; as a loss only k3 pulls in expectation."),
      coefficient: klCoefficient.describe("Weight of the divergence in the loss, such as 0.001."),
    })
    .optional()
    .describe("Divergence from the frozen policy of the start, masked like the loss; absent: off."),
  rejectGroupsWithoutSignal: z
    .boolean()
    .default(true)
    .describe("Leave out groups whose rewards are all equal; they have no advantage."),
  ...common,
});

const criticFields = {
  schedule: scheduleOptionsSchema.describe("The critic's own learning rate over the steps of this stage."),
  clip: z
    .number()
    .positive()
    .default(0.5)
    .describe(
      "A value that has moved this far towards its return within one step earns no further gradient, in points of reward; a clip wider than the rewards never acts.",
    ),
  leadSteps: z
    .int()
    .min(0)
    .default(0)
    .describe("First steps of the stage in which the critic learns alone and the policy stays as it is."),
};

const criticOptionsSchema = z.discriminatedUnion("trunk", [
  z.strictObject({
    trunk: defaultType("own").describe(
      "A copy of the policy at the start of the stage with a value head; needs its memory again.",
    ),
    ...criticFields,
  }),
  z.strictObject({
    trunk: z
      .literal("shared")
      .describe("A value head on the policy itself, whose weights then learn from both losses."),
    coefficient: z
      .number()
      .positive()
      .default(0.5)
      .describe("Weight of the critic's loss against the policy's in what their trunk learns."),
    ...criticFields,
  }),
]);

const ppoOptionsSchema = z.strictObject({
  type: z
    .literal("ppo")
    .describe("Compares each token with the value a critic expected (docs/algorithms/ppo.md)."),
  groupSize: z.int().min(1).default(1).describe("Trajectories for each question; PPO needs no more than 1."),
  gae: gaeOptionsSchema.prefault({}).describe("How advantages are estimated from the critic's values."),
  whiten: z
    .boolean()
    .default(true)
    .describe("Give the advantages of all trained tokens of a step mean 0 and deviation 1."),
  kl: z
    .strictObject({
      estimator: z.enum(["k1", "k3"]).default("k1").describe("Estimator of the divergence for each token."),
      coefficient: klCoefficient.describe(
        "What a nat of divergence costs, in points of reward, such as 0.001.",
      ),
    })
    .optional()
    .describe(
      "Divergence from the frozen policy of the start, taken from the reward of each token; absent: off.",
    ),
  critic: criticOptionsSchema.describe("The model that learns what each state is worth."),
  ...common,
});

const rejectionOptionsSchema = z.strictObject({
  type: z
    .literal("rejectionSampling")
    .describe(
      "Imitates the trajectories that earned enough and forgets the others; no gradient pushes away (docs/algorithms/baselines.md).",
    ),
  groupSize: z.int().min(1).default(5).describe("Trajectories sampled for each question."),
  threshold: z.number().default(1).describe("Least reward of a trajectory that is kept."),
  keep: z
    .int()
    .min(1)
    .optional()
    .describe("Most kept trajectories of one question, the first ones sampled; absent: all that differ."),
  minibatchSize: common.minibatchSize,
  epochs: common.epochs,
});

export const algorithmOptionsSchema = z.discriminatedUnion("type", [
  grpoOptionsSchema,
  ppoOptionsSchema,
  rejectionOptionsSchema,
]);

export type AlgorithmOptions = z.infer<typeof algorithmOptionsSchema>;
export type GrpoOptions = z.infer<typeof grpoOptionsSchema>;
export type PpoOptions = z.infer<typeof ppoOptionsSchema>;
export type RejectionOptions = z.infer<typeof rejectionOptionsSchema>;

/** The divergence from a frozen policy that these options ask for; rejection sampling knows none. */
export function klOf(options: AlgorithmOptions): GrpoOptions["kl"] {
  return options.type === "rejectionSampling" ? undefined : options.kl;
}

/** The loss these options ask an engine for; the KL term of PPO is in the rewards. */
export function policyLoss(options: GrpoOptions | PpoOptions): Loss {
  const { type, clipLow, clipHigh, kl } = options;
  return { type: "ppo", clipLow, clipHigh, ...(type === "grpo" && kl && { kl }) };
}

/** The loss these options ask a critic for. */
export function criticLoss({ critic }: PpoOptions): ValueLoss {
  return { type: "value", clip: critic.clip };
}
