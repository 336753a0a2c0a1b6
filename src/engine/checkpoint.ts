/**
 * A model folder: `config.json` and `model.safetensors` as Hugging Face's libraries read them, and for training the
 * optimiser's state beside them. Files of a family or a kind of scaling that the decoder does not compute are
 * refused. Files are never half written; that a folder appears at once is the caller's care.
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { CheckpointError } from "../errors.ts";
import { exists, fileError, writeFileAtomic } from "../shared/files.ts";
import type { Tokenizer } from "../tokenizer/tokenizer.ts";
import type { OptimizerState } from "./adam-graph.ts";
import { type ModelOptions, modelOptionsSchema, parameterShapes } from "./model-options.ts";
import type { Parameter, ParameterSet } from "./parameters.ts";
import { readSafetensors, writeSafetensors } from "./safetensors.ts";

const configFile = "config.json";
const weightsFile = "model.safetensors";
const momentsFile = "optimizer.safetensors";
const optimizerFile = "optimizer.json";

/** The part of Hugging Face's Llama configuration that changes the mathematics. */
const configSchema = z.object({
  model_type: z.literal("llama", "only models of the family llama are supported"),
  hidden_size: z.int(),
  num_hidden_layers: z.int(),
  num_attention_heads: z.int(),
  num_key_value_heads: z.int(),
  intermediate_size: z.int(),
  vocab_size: z.int(),
  max_position_embeddings: z.int(),
  tie_word_embeddings: z.boolean().default(false),
  rope_theta: z.number().optional(),
  rope_parameters: z
    .object({
      rope_type: z.literal("default", "only rotary embeddings without scaling are supported"),
      rope_theta: z.number(),
    })
    .optional(),
  rope_scaling: z.null("only rotary embeddings without scaling are supported").optional(),
  rms_norm_eps: z.number().default(1e-6),
  hidden_act: z.literal("silu", "only the activation silu is supported").default("silu"),
  attention_bias: z.literal(false, "only attention without biases is supported").default(false),
  mlp_bias: z.literal(false, "only layers without biases are supported").default(false),
  head_dim: z.int().optional(),
});

const optimizerSchema = z.strictObject({ step: z.int().nonnegative() });

/** Writes configuration and weights into an existing folder; the tokenizer's ids tell other libraries where to stop. */
export async function writeModel(
  folder: string,
  described: { readonly model: ModelOptions; readonly tokenizer: Tokenizer },
  parameters: ParameterSet,
): Promise<void> {
  const { model, tokenizer } = described;
  const config: z.input<typeof configSchema> & Record<string, unknown> = {
    architectures: ["LlamaForCausalLM"],
    model_type: "llama",
    hidden_size: model.width,
    num_hidden_layers: model.layers,
    num_attention_heads: model.heads,
    num_key_value_heads: model.keyValueHeads,
    intermediate_size: model.feedForward,
    vocab_size: model.vocabularySize,
    max_position_embeddings: model.contextLength,
    tie_word_embeddings: model.tieEmbeddings,
    rope_theta: model.ropeBase,
    rms_norm_eps: model.rmsEpsilon,
    hidden_act: "silu",
    attention_bias: false,
    mlp_bias: false,
    bos_token_id: null,
    eos_token_id: tokenizer.endOfTextId,
    pad_token_id: tokenizer.paddingId,
    torch_dtype: "float32",
  };
  await Promise.all([
    writeFileAtomic(join(folder, configFile), `${JSON.stringify(config, null, 2)}\n`),
    writeSafetensors(join(folder, weightsFile), parameters),
  ]);
}

/** Reads a model folder. Throws `CheckpointError` when a part is damaged or of another family, `FileError` when one cannot be read. */
export async function readModel(
  folder: string,
): Promise<{ model: ModelOptions; parameters: Map<string, Parameter> }> {
  const path = join(folder, configFile);
  const parsed = configSchema.safeParse(await readJson(path));
  if (!parsed.success) {
    throw new CheckpointError(
      `${path} describes no model that can be loaded:\n${z.prettifyError(parsed.error)}`,
    );
  }
  const model = modelFromConfig(path, parsed.data);
  const parameters = await readSafetensors(join(folder, weightsFile));
  return { model, parameters: orderParameters(folder, model, parameters) };
}

function modelFromConfig(path: string, config: z.infer<typeof configSchema>): ModelOptions {
  const ropeBase = config.rope_parameters?.rope_theta ?? config.rope_theta ?? 10_000;
  const parsed = modelOptionsSchema.safeParse({
    layers: config.num_hidden_layers,
    width: config.hidden_size,
    heads: config.num_attention_heads,
    keyValueHeads: config.num_key_value_heads,
    feedForward: config.intermediate_size,
    vocabularySize: config.vocab_size,
    contextLength: config.max_position_embeddings,
    tieEmbeddings: config.tie_word_embeddings,
    ropeBase,
    rmsEpsilon: config.rms_norm_eps,
  });
  if (!parsed.success) throw new CheckpointError(`${path}: ${z.prettifyError(parsed.error)}`);
  const size = parsed.data.width / parsed.data.heads;
  if (config.head_dim !== undefined && config.head_dim !== size) {
    throw new CheckpointError(
      `${path}: head_dim ${config.head_dim} differs from hidden_size / heads = ${size}, which is not supported`,
    );
  }
  return parsed.data;
}

/** The parameters in the order of the network, each of the expected shape. */
function orderParameters(
  folder: string,
  model: ModelOptions,
  parameters: ParameterSet,
): Map<string, Parameter> {
  const path = join(folder, weightsFile);
  return new Map(
    [...parameterShapes(model)].map(([name, shape]) => {
      const parameter = parameters.get(name);
      if (!parameter)
        throw new CheckpointError(
          `${path} has no ${name}; it belongs to another model than ${configFile} says`,
        );
      if (parameter.shape.join() !== shape.join()) {
        throw new CheckpointError(
          `${path}: ${name} has shape [${parameter.shape}], [${shape}] was expected from ${configFile}`,
        );
      }
      return [name, parameter];
    }),
  );
}

/** Writes the optimiser's state beside a model. */
export async function writeOptimizer(folder: string, state: OptimizerState): Promise<void> {
  const moments = new Map<string, Parameter>();
  for (const [name, moment] of state.firstMoments) moments.set(`first.${name}`, moment);
  for (const [name, moment] of state.secondMoments) moments.set(`second.${name}`, moment);
  await Promise.all([
    writeSafetensors(join(folder, momentsFile), moments),
    writeFileAtomic(join(folder, optimizerFile), `${JSON.stringify({ step: state.step })}\n`),
  ]);
}

/** Reads the optimiser's state for the given parameters, or nothing where the folder holds a model alone. */
export async function readOptimizer(
  folder: string,
  parameters: ParameterSet,
): Promise<OptimizerState | undefined> {
  const path = join(folder, optimizerFile);
  if (!(await exists(path))) return undefined;
  const parsed = optimizerSchema.safeParse(await readJson(path));
  if (!parsed.success) throw new CheckpointError(`${path}: ${z.prettifyError(parsed.error)}`);
  const moments = await readSafetensors(join(folder, momentsFile));
  const select = (prefix: string): Map<string, Parameter> =>
    new Map(
      [...parameters].map(([name, { shape }]) => {
        const moment = moments.get(prefix + name);
        if (!moment || moment.shape.join() !== shape.join()) {
          throw new CheckpointError(
            `${join(folder, momentsFile)} has no ${prefix}${name} of shape [${shape}]; use another checkpoint`,
          );
        }
        return [name, moment];
      }),
    );
  return { step: parsed.data.step, firstMoments: select("first."), secondMoments: select("second.") };
}

async function readJson(path: string): Promise<unknown> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (cause) {
    throw fileError(`cannot read ${path}`, cause);
  }
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new CheckpointError(`${path} is not JSON: ${(cause as Error).message}`, { cause });
  }
}
