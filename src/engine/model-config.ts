/**
 * Hugging Face's `config.json` and our `ModelOptions`, both ways, for llama, mistral, qwen2 and qwen3. Every field that
 * changes the mathematics is read or must have the value that switches it off (`config-fields.ts`); none is
 * ignored. Where a field is missing, the default of the family's class in transformers holds.
 */
import { z } from "zod";
import { CheckpointError } from "../errors.ts";
import { requireNeutralFields } from "./config-fields.ts";
import {
  headSize,
  type ModelFamily,
  type ModelOptions,
  modelFamilies,
  modelOptionsSchema,
  type RopeScaling,
} from "./model-options.ts";

const supported = modelFamilies.join(", ");

const configSchema = z.looseObject({
  model_type: z.enum(modelFamilies, `only models of the families ${supported} are supported`),
  hidden_size: z.int(),
  num_hidden_layers: z.int(),
  num_attention_heads: z.int(),
  num_key_value_heads: z.int().nullish(),
  intermediate_size: z.int(),
  vocab_size: z.int(),
  max_position_embeddings: z.int(),
  tie_word_embeddings: z.boolean().default(false),
  rope_theta: z.number().optional(),
  rope_parameters: z.looseObject({}).nullish(),
  rope_scaling: z.looseObject({}).nullish(),
  rms_norm_eps: z.number().default(1e-6),
  hidden_act: z.literal("silu", "only the activation silu is supported").default("silu"),
  attention_bias: z.boolean().optional(),
  mlp_bias: z.literal(false, "only layers without biases are supported").default(false),
  head_dim: z.int().nullish(),
  sliding_window: z.int().nullish(),
  use_sliding_window: z.boolean().default(false),
  layer_types: z.array(z.string()).nullish(),
});

type Config = z.infer<typeof configSchema>;

/** The model that a parsed `config.json` describes. Throws `CheckpointError` that names `path` and the field. */
export function modelFromConfig(path: string, json: unknown): ModelOptions {
  const parsed = configSchema.safeParse(json);
  if (!parsed.success) {
    throw new CheckpointError(
      `${path} describes no model that can be loaded:\n${z.prettifyError(parsed.error)}`,
    );
  }
  const config = parsed.data;
  requireNeutralFields(path, config, Object.keys(configSchema.shape));
  requireFullAttention(path, config);
  requirePlainBiases(path, config);
  const { base, scaling } = readRope(path, config);
  return completeModel(path, {
    family: config.model_type,
    headSize: config.head_dim ?? (config.model_type === "qwen3" ? 128 : undefined),
    ropeScaling: scaling,
    shape: {
      layers: config.num_hidden_layers,
      width: config.hidden_size,
      heads: config.num_attention_heads,
      keyValueHeads: keyValueHeads(path, config),
      feedForward: config.intermediate_size,
      vocabularySize: config.vocab_size,
      contextLength: config.max_position_embeddings,
      tieEmbeddings: config.tie_word_embeddings,
      ropeBase: base,
      rmsEpsilon: config.rms_norm_eps,
    },
  });
}

/** The parts of a model as a file gives them. */
export interface ModelParts {
  readonly family: ModelFamily;
  readonly headSize: number | undefined;
  readonly ropeScaling: RopeScaling | undefined;
  /** Fields of `modelOptionsSchema`. */
  readonly shape: Readonly<Record<string, unknown>>;
}

/** Checks the shape and leaves out what is as in a plain Llama. Throws `CheckpointError` that names `path`. */
export function completeModel(path: string, parts: ModelParts): ModelOptions {
  const { family, ropeScaling } = parts;
  const { heads, width } = parts.shape as { heads: number; width: number };
  const isOwnHeadSize = parts.headSize !== undefined && parts.headSize * heads !== width;
  // The rules of a fresh model bind width and heads together; a head size of its own unbinds them.
  const checked = modelOptionsSchema.safeParse(
    isOwnHeadSize ? { ...parts.shape, width: heads * (parts.headSize as number) } : parts.shape,
  );
  if (!checked.success) throw new CheckpointError(`${path}: ${z.prettifyError(checked.error)}`);
  return {
    ...checked.data,
    width,
    ...(family !== "llama" && { family }),
    ...(isOwnHeadSize && { headSize: parts.headSize as number }),
    ...(ropeScaling && { ropeScaling }),
  };
}

function keyValueHeads(
  path: string,
  { model_type, num_key_value_heads, num_attention_heads }: Config,
): number {
  if (num_key_value_heads != null) return num_key_value_heads;
  if (model_type === "llama") return num_attention_heads;
  throw new CheckpointError(`${path} has no num_key_value_heads, which a ${model_type} needs`);
}

/** Qwen2 has biases whatever `attention_bias` says; elsewhere they would be on the output layer too. */
function requirePlainBiases(path: string, { model_type, attention_bias }: Config): void {
  if (model_type === "qwen2" || attention_bias !== true) return;
  throw new CheckpointError(
    `${path}: attention_bias is true: only attention without biases is supported in a ${model_type}`,
  );
}

/** A window as long as the context hides nothing. Mistral's class has one of 4096 where the field is missing. */
function requireFullAttention(path: string, config: Config): void {
  const isQwen = config.model_type === "qwen2" || config.model_type === "qwen3";
  const isOn = isQwen ? config.use_sliding_window : config.model_type === "mistral";
  const window = config.sliding_window === undefined ? 4096 : config.sliding_window;
  if (isOn && window !== null && window < config.max_position_embeddings)
    throw new CheckpointError(
      `${path}: sliding_window ${window} is shorter than max_position_embeddings ${config.max_position_embeddings}; attention within a window is not supported`,
    );
  const other = isOn || isQwen ? config.layer_types?.find((type) => type !== "full_attention") : undefined;
  if (other !== undefined && !(isOn && window === null))
    throw new CheckpointError(`${path}: layer_types has ${other}; only full_attention is supported`);
}

const llama3Schema = z.looseObject({
  factor: z.number().positive(),
  low_freq_factor: z.number().positive(),
  high_freq_factor: z.number().positive(),
  original_max_position_embeddings: z.int().positive(),
});

/**
 * The one of both fields that says how heads are rotated. Libraries disagree on which of two wins, and a rotation for
 * each kind of layer is none of ours: both are refused.
 */
function chooseRope(path: string, { rope_parameters, rope_scaling }: Config) {
  const isGiven = (rope: Config["rope_scaling"]) => rope != null && Object.keys(rope).length > 0;
  if (isGiven(rope_parameters) && isGiven(rope_scaling))
    throw new CheckpointError(
      `${path}: rope_scaling ${JSON.stringify(rope_scaling)} and rope_parameters ${JSON.stringify(rope_parameters)} both say how heads are rotated; leave out the one that does not hold`,
    );
  const name = isGiven(rope_parameters) ? "rope_parameters" : "rope_scaling";
  const rope = { rope_parameters, rope_scaling }[name] ?? {};
  const nested = Object.entries(rope).find(([, value]) => typeof value === "object" && value !== null);
  if (nested)
    throw new CheckpointError(
      `${path}: ${name}.${nested[0]} ${JSON.stringify(nested[1])} is not supported; only one rotation for all layers is`,
    );
  return { name, rope };
}

/** Base and scaling: transformers 5 writes `rope_parameters`, 4 wrote `rope_theta` and `rope_scaling`. */
function readRope(path: string, config: Config): { base: number; scaling: RopeScaling | undefined } {
  const { name, rope } = chooseRope(path, config);
  const theta = z.number().optional().safeParse(rope.rope_theta);
  if (!theta.success) throw new CheckpointError(`${path}: ${name}.rope_theta is not a number`);
  const base = theta.data ?? config.rope_theta ?? 10_000;
  const type = rope.rope_type ?? rope.type ?? "default";
  if (rope.partial_rotary_factor !== undefined && rope.partial_rotary_factor !== 1)
    throw new CheckpointError(
      `${path}: ${name}.partial_rotary_factor ${JSON.stringify(rope.partial_rotary_factor)} is not supported; only heads that are rotated as a whole are`,
    );
  if (type === "default") return { base, scaling: undefined };
  if (type !== "llama3")
    throw new CheckpointError(
      `${path}: ${name}.rope_type ${JSON.stringify(type)} is not supported; only rotary embeddings without scaling and with llama3's are`,
    );
  const parsed = llama3Schema.safeParse(rope);
  if (!parsed.success)
    throw new CheckpointError(`${path}: ${name} of llama3:\n${z.prettifyError(parsed.error)}`);
  return {
    base,
    scaling: {
      factor: parsed.data.factor,
      lowFrequencyFactor: parsed.data.low_freq_factor,
      highFrequencyFactor: parsed.data.high_freq_factor,
      originalContextLength: parsed.data.original_max_position_embeddings,
    },
  };
}

const architectures: Readonly<Record<ModelFamily, string>> = {
  llama: "LlamaForCausalLM",
  mistral: "MistralForCausalLM",
  qwen2: "Qwen2ForCausalLM",
  qwen3: "Qwen3ForCausalLM",
};

/** What `config.json` says of a model, for transformers 4 and 5, vLLM and others that read it. */
export function configOfModel(model: ModelOptions): Record<string, unknown> {
  const family = model.family ?? "llama";
  return {
    architectures: [architectures[family]],
    model_type: family,
    hidden_size: model.width,
    num_hidden_layers: model.layers,
    num_attention_heads: model.heads,
    num_key_value_heads: model.keyValueHeads,
    head_dim: headSize(model),
    intermediate_size: model.feedForward,
    vocab_size: model.vocabularySize,
    max_position_embeddings: model.contextLength,
    tie_word_embeddings: model.tieEmbeddings,
    rope_theta: model.ropeBase,
    rope_scaling: model.ropeScaling ? scalingConfig(model.ropeScaling) : null,
    rms_norm_eps: model.rmsEpsilon,
    hidden_act: "silu",
    ...(family === "mistral" && { sliding_window: null }),
    ...(family === "qwen2" && { use_sliding_window: false, sliding_window: null }),
    ...(family === "qwen3" && { use_sliding_window: false, sliding_window: null, attention_bias: false }),
    ...(family === "llama" && { attention_bias: false, mlp_bias: false }),
  };
}

function scalingConfig(scaling: RopeScaling): Record<string, unknown> {
  return {
    rope_type: "llama3",
    factor: scaling.factor,
    low_freq_factor: scaling.lowFrequencyFactor,
    high_freq_factor: scaling.highFrequencyFactor,
    original_max_position_embeddings: scaling.originalContextLength,
  };
}
