/** The derivative of causal grouped-query attention (`attention.ts`), from the weights and the output of its way there. */
import type { Dimension, Graph, Tensor } from "./graph.ts";
import { batchedProduct, detach, reshape, sumOfLastDimension, transpose } from "./operators.ts";

/** How many heads there are, how wide they are, and the sizes of a batch. */
export interface AttentionShape {
  readonly heads: number;
  readonly keyValueHeads: number;
  readonly headSize: number;
  /** Sequences, and tokens of a sequence. */
  readonly sizes: readonly [B: Dimension, T: Dimension];
}

/** What attention computes, and its way back reads. */
export interface AttentionValues {
  /** (B, T, heads * headSize) */
  readonly attended: Tensor;
  /** (B, heads, T, T); exactly 0 where a token may not look. */
  readonly weights: Tensor;
  /** (B, keyValueHeads, T, headSize) */
  readonly keyHeads: Tensor;
  readonly valueHeads: Tensor;
}

/** T times the query heads that share a key head. */
const GT = "GT";

/** Queries, keys and values (rotated) by token, what attention computed from them, and the gradient of its output. */
export interface AttentionGradientInputs extends AttentionValues {
  readonly query: Tensor;
  readonly key: Tensor;
  readonly value: Tensor;
  readonly gradient: Tensor;
}

/**
 * Query heads that share a key head are stacked along time, so that keys and values are never repeated. The derivative
 * of the softmax needs the row sums of gradient times weights; they equal those of gradient times output (Dao et al.,
 * 2022), and are subtracted by the product that they belong to: as one more column, against a column of -1.
 */
export function attentionGradients(
  graph: Graph,
  inputs: AttentionGradientInputs,
  shape: AttentionShape,
): (Tensor | undefined)[] {
  const { query, key, value, gradient, attended, keyHeads, valueHeads } = inputs;
  const { heads, keyValueHeads, headSize, sizes } = shape;
  const [B, T] = sizes;
  const weights = stackHeads(graph, inputs.weights, keyValueHeads);
  const stackedGradient = stack(graph, gradient, shape);
  const ofValue = value.requiresGradient
    ? join(graph, batchedProduct(graph, weights, stackedGradient, { transposeA: true }), shape)
    : undefined;
  if (!query.requiresGradient && !key.requiresGradient) return [undefined, undefined, ofValue];
  const products = graph.node("Mul", [gradient, attended], attended.shape);
  const byToken = sumOfLastDimension(graph, reshape(graph, products, [B, T, heads, headSize]));
  const rowSums = stackHeads(graph, transpose(graph, byToken, [0, 2, 1, 3]), keyValueHeads);
  const column = [B, keyValueHeads, T, 1];
  const minusOnes = graph.node("Expand", [graph.scalar(-1), graph.shape(column)], column);
  const centred = batchedProduct(
    graph,
    appendColumn(graph, stackedGradient, rowSums),
    appendColumn(graph, valueHeads, minusOnes),
    { transposeB: true },
  );
  const scoreGradient = graph.node("Mul", [centred, weights], weights.shape);
  const scale = 1 / Math.sqrt(headSize);
  const ofQuery = (): Tensor =>
    unstack(graph, batchedProduct(graph, scoreGradient, keyHeads, { scale }), shape);
  const ofKey = (): Tensor =>
    join(
      graph,
      batchedProduct(graph, scoreGradient, stack(graph, query, shape), { transposeA: true, scale }),
      shape,
    );
  return [
    query.requiresGradient ? ofQuery() : undefined,
    key.requiresGradient ? ofKey() : undefined,
    ofValue,
  ];
}

/** (…, D) and (…, 1) to (…, D + 1). */
function appendColumn(graph: Graph, x: Tensor, column: Tensor): Tensor {
  const shape = [...x.shape.slice(0, -1), (x.shape.at(-1) as number) + 1];
  return graph.node("Concat", [x, column], shape, { attributes: { axis: -1 } });
}

/** (B, T, heads * headSize) to (B, keyValueHeads, GT, headSize). */
function stack(graph: Graph, x: Tensor, { heads, keyValueHeads, headSize, sizes }: AttentionShape): Tensor {
  const [B, T] = sizes;
  const byHead = transpose(graph, reshape(graph, detach(x), [B, T, heads, headSize]), [0, 2, 1, 3]);
  return stackHeads(graph, byHead, keyValueHeads);
}

/** (B, heads, T, D) to (B, keyValueHeads, GT, D). */
function stackHeads(graph: Graph, x: Tensor, keyValueHeads: number): Tensor {
  const [B, , , D] = x.shape as [Dimension, Dimension, Dimension, Dimension];
  const rest = -1;
  return graph.node("Reshape", [x, graph.shape([B, keyValueHeads, rest, D])], [B, keyValueHeads, GT, D]);
}

/** The inverse of `stack`. */
function unstack(graph: Graph, x: Tensor, { heads, headSize, sizes }: AttentionShape): Tensor {
  const [B, T] = sizes;
  const byToken = transpose(graph, reshape(graph, x, [B, heads, T, headSize]), [0, 2, 1, 3]);
  return reshape(graph, byToken, [B, T, heads * headSize]);
}

/** (B, keyValueHeads, T, headSize) to (B, T, keyValueHeads * headSize). */
function join(graph: Graph, x: Tensor, { keyValueHeads, headSize, sizes }: AttentionShape): Tensor {
  const [B, T] = sizes;
  return reshape(graph, transpose(graph, x, [0, 2, 1, 3]), [B, T, keyValueHeads * headSize]);
}
