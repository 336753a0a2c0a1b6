/**
 * Learning rate of a step: linear warm-up, then constant, linear or cosine decay (Loshchilov and Hutter 2017).
 * Pure: a resumed run gets the rate of its step without stored state.
 */
import { z } from "zod";

const minRatio = z
  .number()
  .min(0)
  .max(1)
  .default(0)
  .describe("Share of the peak learning rate that is left in the last step, 0 to 1.");

export const scheduleOptionsSchema = z.strictObject({
  learningRate: z.number().positive().describe("Peak learning rate, reached after the warm-up."),
  warmupSteps: z
    .int()
    .min(0)
    .default(0)
    .describe("Steps over which the learning rate rises linearly to its peak; 0 starts at the peak."),
  decay: z
    .discriminatedUnion("type", [
      z.strictObject({ type: z.literal("constant") }),
      z.strictObject({ type: z.literal("linear"), minRatio }),
      z.strictObject({ type: z.literal("cosine"), minRatio }),
    ])
    .default({ type: "constant" })
    .describe("How the learning rate falls from the end of the warm-up to the last step."),
});

export type ScheduleOptions = z.infer<typeof scheduleOptionsSchema>;

/**
 * The learning rate of `step` (from 0) in a training of `totalSteps`. Warm-up step s has the share
 * (s + 1) / warmupSteps, so that no step is wasted on a rate of 0; the last step has the share `minRatio`.
 */
export function learningRate(
  step: number,
  options: ScheduleOptions & { readonly totalSteps: number },
): number {
  const { learningRate: peak, warmupSteps, decay, totalSteps } = options;
  if (step < warmupSteps) return (peak * (step + 1)) / warmupSteps;
  if (decay.type === "constant") return peak;
  const decaySteps = totalSteps - 1 - warmupSteps;
  const progress = decaySteps <= 0 ? 1 : Math.min(1, (step - warmupSteps) / decaySteps);
  const left = decay.type === "linear" ? 1 - progress : (1 + Math.cos(Math.PI * progress)) / 2;
  return peak * (decay.minRatio + (1 - decay.minRatio) * left);
}
