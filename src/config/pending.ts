/** Options of rooms whose own schema is not there yet; each moves to its room. */
import { z } from "zod";

export const worldOptionsSchema = z.discriminatedUnion("name", [
  z.strictObject({ name: z.literal("atlas") }),
  z.strictObject({ name: z.literal("lab") }),
]);
export const bm25OptionsSchema = z.strictObject({});
export const environmentOptionsSchema = z.strictObject({
  k: z.int().min(1).default(3),
  maxSearches: z.int().min(0).default(4),
  maxTurnTokens: z.int().min(1).default(500),
  maxObservationTokens: z.int().min(1).default(500),
});
export const rewardOptionsSchema = z.strictObject({ type: z.enum(["exactMatch"]).default("exactMatch") });
export const teacherOptionsSchema = z.strictObject({ patience: z.number().min(0).max(1).default(0.15) });
export const evaluationOptionsSchema = z.strictObject({
  n: z.int().min(1).default(256),
  everySteps: z.int().min(1).optional(),
});
export const modelOptionsSchema = z.strictObject({
  layers: z.int().min(1).default(4),
  width: z.int().min(8).default(128),
  heads: z.int().min(1).default(4),
  keyValueHeads: z.int().min(1).default(4),
  feedForward: z.int().min(1).default(512),
  contextLength: z.int().min(16).default(256),
  vocabularySize: z.int().min(256).default(512),
  tieEmbeddings: z.boolean().default(true),
  ropeBase: z.number().positive().default(10000),
  rmsEpsilon: z.number().positive().default(1e-5),
});
