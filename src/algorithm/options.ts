/** Options of the algorithm: how rewards become a loss. The defaults are GRPO as Search-R1 trains it, with clip-higher. */
import { z } from "zod";
import type { Loss } from "./loss.ts";

export const algorithmOptionsSchema = z.strictObject({
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
  kl: z
    .strictObject({
      estimator: z
        .enum(["k1", "k3"])
        .default("k3")
        .describe("Estimator of the divergence for each token; as a loss only k3 pulls in expectation."),
      coefficient: z.number().positive().describe("Weight of the divergence in the loss, such as 0.001."),
    })
    .optional()
    .describe("Divergence from the frozen policy of the start, masked like the loss; absent: off."),
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
  rejectGroupsWithoutSignal: z
    .boolean()
    .default(true)
    .describe("Leave out groups whose rewards are all equal; they have no advantage."),
});

export type AlgorithmOptions = z.infer<typeof algorithmOptionsSchema>;

/** The loss these options ask an engine for. */
export function policyLoss(options: AlgorithmOptions): Loss {
  const { clipLow, clipHigh, kl } = options;
  return { type: "ppo", clipLow, clipHigh, ...(kl && { kl }) };
}
