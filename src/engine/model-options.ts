/** The shape of a decoder of the Llama family, as in Hugging Face's `config.json`. */
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

export type ModelOptions = z.infer<typeof modelOptionsSchema>;

export function headSize(options: ModelOptions): number {
  return options.width / options.heads;
}

/** Names (Hugging Face's) and shapes of all parameters, in the order of the network. */
export function parameterShapes(options: ModelOptions): ReadonlyMap<string, readonly number[]> {
  const { width, feedForward, vocabularySize } = options;
  const keyValueWidth = options.keyValueHeads * headSize(options);
  const shapes = new Map<string, readonly number[]>([["model.embed_tokens.weight", [vocabularySize, width]]]);
  for (let layer = 0; layer < options.layers; layer++) {
    const prefix = `model.layers.${layer}`;
    shapes.set(`${prefix}.input_layernorm.weight`, [width]);
    shapes.set(`${prefix}.self_attn.q_proj.weight`, [width, width]);
    shapes.set(`${prefix}.self_attn.k_proj.weight`, [keyValueWidth, width]);
    shapes.set(`${prefix}.self_attn.v_proj.weight`, [keyValueWidth, width]);
    shapes.set(`${prefix}.self_attn.o_proj.weight`, [width, width]);
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
