/**
 * What a recipe says of low-rank adapters (Hu et al., 2021, "LoRA"): beside the frozen weight W (out, in) of a projection
 * two small matrices A (rank, in) and B (out, rank) are trained, and the projection computes x Wᵀ + alpha/rank (x Aᵀ) Bᵀ.
 */
import { z } from "zod";

/** The projections of a decoder layer by the names that published models and PEFT give them. */
export const loraTargets = [
  "q_proj",
  "k_proj",
  "v_proj",
  "o_proj",
  "gate_proj",
  "up_proj",
  "down_proj",
] as const;
export type LoraTarget = (typeof loraTargets)[number];

export const loraOptionsSchema = z.strictObject({
  rank: z
    .int()
    .min(1)
    .default(16)
    .describe("Rows of A and columns of B; at most the smaller side of the smallest target."),
  alpha: z
    .number()
    .positive()
    .default(32)
    .describe("Strength of the adapters: what they add is multiplied by `alpha / rank`."),
  targets: z
    .array(z.enum(loraTargets))
    .min(1)
    .refine((targets) => new Set(targets).size === targets.length, "a target is named twice")
    .default([...loraTargets])
    .describe("Projections of every layer that get adapters; default: all."),
});

export type LoraOptions = z.infer<typeof loraOptionsSchema>;
