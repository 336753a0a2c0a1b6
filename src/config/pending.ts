/** Options of rooms whose own schema is not there yet; each moves to its room. */
import { z } from "zod";

export const bm25OptionsSchema = z.strictObject({});
export const rewardOptionsSchema = z.strictObject({ type: z.enum(["exactMatch"]).default("exactMatch") });
export const teacherOptionsSchema = z.strictObject({ patience: z.number().min(0).max(1).default(0.15) });
export const evaluationOptionsSchema = z.strictObject({
  n: z.int().min(1).default(256),
  everySteps: z.int().min(1).optional(),
});
