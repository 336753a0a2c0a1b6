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
  addRows(data, gradient, { rows: tokens, width: shape[1] as number });
}

/** Adds each row of `source` (M, width) to the one of `target` (N, width) that `rows` (M) names. */
export function addRows(
  target: Float32Array,
  source: Float32Array,
  { rows, width }: { readonly rows: Int32Array; readonly width: number },
): void {
  for (let row = 0; row < rows.length; row++) {
    const start = (rows[row] as number) * width;
    const from = row * width;
    for (let i = 0; i < width; i++)
      target[start + i] = (target[start + i] as number) + (source[from + i] as number);
  }
}
