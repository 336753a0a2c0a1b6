/**
 * What a recipe can say about the model it starts from. A plain text is the source of a model that exists, in any form
 * `forager models` takes: a short name, `hf:owner/name[@revision]`, a folder (such as a checkpoint) or a GGUF file.
 */
import { z } from "zod";
import { modelOptionsSchema } from "../engine/model-options.ts";

const variants = z.discriminatedUnion("type", [
  modelOptionsSchema.safeExtend({
    type: z.literal("fresh").describe("Random weights and a tokenizer trained on the corpus."),
  }),
  z.strictObject({
    type: z.literal("pretrained").describe("Weights and tokenizer of a model that exists."),
    source: z
      .string()
      .min(1)
      .describe(
        "A short name of `forager models list`, `hf:owner/name[@revision]`, a folder (also a run's checkpoint) or a GGUF file. Paths are relative to the recipe's folder; `model: SOURCE` is short for this.",
      ),
  }),
]);

export const modelSchema = z.preprocess(
  (value) => (typeof value === "string" ? { type: "pretrained", source: value } : value),
  variants,
);
