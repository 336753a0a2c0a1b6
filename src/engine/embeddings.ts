/** The table of embeddings before the layers: rows that are looked up, and the gradient's way back to them. */
import type { Parameter } from "./parameters.ts";

export const embeddingTable = "model.embed_tokens.weight";

/** Writes the embedding of each token into `target` (tokens, width). */
export function embed({ data, shape }: Parameter, tokens: Int32Array, target: Float32Array): void {
  const width = shape[1] as number;
  for (const [row, token] of tokens.entries())
    target.set(data.subarray(token * width, (token + 1) * width), row * width);
}

/** Adds each row's gradient to that of its token's vector. */
export function addEmbeddingGradient(
  { data, shape }: Parameter,
  tokens: Int32Array,
  gradient: Float32Array,
): void {
  const width = shape[1] as number;
  for (let row = 0; row < tokens.length; row++) {
    const start = (tokens[row] as number) * width;
    const from = row * width;
    for (let i = 0; i < width; i++)
      data[start + i] = (data[start + i] as number) + (gradient[from + i] as number);
  }
}
