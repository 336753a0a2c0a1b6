/**
 * What a recipe can say about the model it starts from. A plain text is the source of a model that exists, in any form
 * `forager models` takes: a short name, `hf:owner/name[@revision]`, a folder (such as a checkpoint) or a GGUF file.
 */
import { z } from "zod";
import { modelOptionsSchema } from "../engine/model-options.ts";
import { ConfigError } from "../errors.ts";
import { endpointSourceSchema } from "../rollout/endpoint/endpoint-options.ts";
import { replayPolicySchema } from "../rollout/recording/replay-policy.ts";

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
  endpointSourceSchema,
  replayPolicySchema,
]);

export const modelSchema = z.preprocess(
  (value) => (typeof value === "string" ? { type: "pretrained", source: value } : value),
  variants,
);

const remoteModelSchema = z.strictObject({
  type: z
    .literal("remote")
    .describe("The model behind `engine.url`, whatever it is; needs `engine.type: tinker`."),
});

/** The agent's model, which may also be wherever a remote engine has it. */
export const agentModelSchema = z.preprocess(
  (value) => (typeof value === "string" ? { type: "pretrained", source: value } : value),
  z.discriminatedUnion("type", [...variants.options, remoteModelSchema]),
);

export type ModelSourceOptions = z.output<typeof modelSchema>;
export type AgentModelOptions = z.output<typeof agentModelSchema>;
/** A model whose weights are at hand. */
export type TrainableModel = Extract<ModelSourceOptions, { type: "fresh" | "pretrained" }>;
/** A model that is only asked. */
export type ServedModel = Exclude<ModelSourceOptions, TrainableModel>;

export function isServed(model: AgentModelOptions): model is ServedModel {
  return model.type === "openai" || model.type === "replay";
}

/** The model as one that can be trained here. Throws `ConfigError` for one whose weights are elsewhere. */
export function trainableModel(model: AgentModelOptions): TrainableModel {
  if (model.type === "fresh" || model.type === "pretrained") return model;
  if (model.type === "remote")
    throw new ConfigError(
      "the weights of a remote model are behind engine.url; this needs a model that is here (model: smollm2-135m)",
      { path: "model.type" },
    );
  const what = model.type === "openai" ? "a model behind a server" : "a recording";
  throw new ConfigError(
    `there is nothing to train: ${what} has no weights here; use forager eval, ask or complete, or name a model that exists (model: smollm2-135m)`,
    { path: "model.type" },
  );
}
