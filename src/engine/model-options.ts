/**
 * The shape of a decoder of the Llama family and of its relatives. A fresh model is a plain Llama, as recipes
 * describe it; what the relatives add (`ArchitectureOptions`) comes only from the files of a published model.
 */
import { z } from "zod";

export const modelOptionsSchema = z
  .strictObject({
    layers: z.int().min(1).max(200).describe("Number of decoder layers."),
    width: z.int().min(8).describe("Size of the residual stream; a multiple of `heads`."),
    heads: z.int().min(1).describe("Query heads; a multiple of `keyValueHeads`."),
    keyValueHeads: z.int().min(1).describe("Key and value heads (grouped-query attention)."),
    feedForward: z.int().min(8).describe("Width of the gated feed-forward layer."),
    vocabularySize: z.int().min(16).describe("Number of token ids."),
    contextLength: z.int().min(16).describe("Most tokens of one sequence."),
    tieEmbeddings: z.boolean().default(true).describe("Whether the output layer is the embedding table."),
    ropeBase: z.number().positive().default(10_000).describe("Base of the rotary position embedding."),
    rmsEpsilon: z
      .number()
      .positive()
      .default(1e-5)
      .describe("Added to the mean square in RMS normalisation."),
  })
  .refine((options) => options.width % options.heads === 0, "width must be a multiple of heads")
  .refine((options) => (options.width / options.heads) % 2 === 0, "width / heads must be even (rotary pairs)")
  .refine(
    (options) => options.heads % options.keyValueHeads === 0,
    "heads must be a multiple of keyValueHeads",
  );

/** Families by the name that `config.json` gives them as `model_type`; SmolLM2 is a llama. */
export const modelFamilies = ["llama", "mistral", "qwen2", "qwen3"] as const;
export type ModelFamily = (typeof modelFamilies)[number];

/** Llama 3's scaling: long wavelengths are stretched by `factor`, short ones kept, those between blended. */
export interface RopeScaling {
  readonly factor: number;
  readonly lowFrequencyFactor: number;
  readonly highFrequencyFactor: number;
  /** Tokens the model was first trained on. */
  readonly originalContextLength: number;
}

/** What a published model may have beyond a plain Llama; all absent in a fresh model. */
export interface ArchitectureOptions {
  /** Whose `config.json` is written; absent: llama. */
  readonly family?: Exclude<ModelFamily, "llama">;
  /** Width of one head; absent: width / heads. */
  readonly headSize?: number;
  readonly ropeScaling?: RopeScaling;
}

export type ModelOptions = z.infer<typeof modelOptionsSchema> & ArchitectureOptions;

export function headSize(options: ModelOptions): number {
  return options.headSize ?? options.width / options.heads;
}

/** Whether queries, keys and values have biases (Qwen2). */
export function hasAttentionBias({ family }: ModelOptions): boolean {
  return family === "qwen2";
}

/** Whether each head's queries and keys are normalised before they are rotated (Qwen3). */
export function hasQueryKeyNorm({ family }: ModelOptions): boolean {
  return family === "qwen3";
}

/** Names (Hugging Face's) and shapes of all parameters, in the order of the network. */
export function parameterShapes(options: ModelOptions): ReadonlyMap<string, readonly number[]> {
  const { width, feedForward, vocabularySize } = options;
  const size = headSize(options);
  const queryWidth = options.heads * size;
  const keyValueWidth = options.keyValueHeads * size;
  const shapes = new Map<string, readonly number[]>([["model.embed_tokens.weight", [vocabularySize, width]]]);
  for (let layer = 0; layer < options.layers; layer++) {
    const prefix = `model.layers.${layer}`;
    shapes.set(`${prefix}.input_layernorm.weight`, [width]);
    shapes.set(`${prefix}.self_attn.q_proj.weight`, [queryWidth, width]);
    shapes.set(`${prefix}.self_attn.k_proj.weight`, [keyValueWidth, width]);
    shapes.set(`${prefix}.self_attn.v_proj.weight`, [keyValueWidth, width]);
    if (hasAttentionBias(options)) {
      shapes.set(`${prefix}.self_attn.q_proj.bias`, [queryWidth]);
      shapes.set(`${prefix}.self_attn.k_proj.bias`, [keyValueWidth]);
      shapes.set(`${prefix}.self_attn.v_proj.bias`, [keyValueWidth]);
    }
    if (hasQueryKeyNorm(options)) {
      shapes.set(`${prefix}.self_attn.q_norm.weight`, [size]);
      shapes.set(`${prefix}.self_attn.k_norm.weight`, [size]);
    }
    shapes.set(`${prefix}.self_attn.o_proj.weight`, [width, queryWidth]);
    shapes.set(`${prefix}.post_attention_layernorm.weight`, [width]);
    shapes.set(`${prefix}.mlp.gate_proj.weight`, [feedForward, width]);
    shapes.set(`${prefix}.mlp.up_proj.weight`, [feedForward, width]);
    shapes.set(`${prefix}.mlp.down_proj.weight`, [width, feedForward]);
  }
  shapes.set("model.norm.weight", [width]);
  if (!options.tieEmbeddings) shapes.set("lm_head.weight", [vocabularySize, width]);
  return shapes;
}

export function parameterCount(options: ModelOptions): number {
  let count = 0;
  for (const shape of parameterShapes(options).values()) count += shape.reduce((a, b) => a * b, 1);
  return count;
}
