/** The derivative of causal grouped-query attention (`attention.ts`), from the weights and the output of its way there. */
import { attentionBlocks } from "./attention-blocks.ts";
import type { Dimension, Graph, Tensor } from "./graph.ts";
import {
  type BatchedProduct,
  batchedProduct,
  detach,
  reshape,
  sumOfLastDimension,
  transpose,
} from "./operators.ts";

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
  /** Of one block (B, heads, T, T), of each of several (1, B * heads, times, keys); exactly 0 where a token may not look. */
  readonly weights: readonly Tensor[];
  /** (B, keyValueHeads, T, headSize) */
  readonly keyHeads: Tensor;
  readonly valueHeads: Tensor;
}

/** Queries, keys and values (rotated) by token, what attention computed from them, and the gradient of its output. */
export interface AttentionGradientInputs extends AttentionValues {
  readonly query: Tensor;
  readonly key: Tensor;
  readonly value: Tensor;
  readonly gradient: Tensor;
  /** As of `attentionBlocks`. */
  readonly blockEnds?: Tensor | undefined;
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
  const { query, key, value, gradient, keyHeads, blockEnds } = inputs;
  const needsScores = query.requiresGradient || key.requiresGradient;
  const gradientHeads = byHead(graph, gradient, shape);
  const centring = needsScores ? centringFactors(graph, inputs, { gradientHeads, shape }) : undefined;
  const queryHeads = byHead(graph, query, shape);
  const scale = 1 / Math.sqrt(shape.headSize);
  const blocks = attentionBlocks(graph, shape, blockEnds).map((block, index) => {
    const weights = block.weights(inputs.weights[index] as Tensor);
    const product = (a: Tensor, b: Tensor, options: BatchedProduct): Tensor =>
      batchedProduct(graph, a, b, options);
    const ofValue = value.requiresGradient
      ? block.atAllKeys(product(weights, block.rows(gradientHeads), { transposeA: true }))
      : undefined;
    if (!centring) return { ofValue };
    const centred = product(block.rows(centring.left), block.keys(centring.right), { transposeB: true });
    const scores = graph.node("Mul", [centred, weights], weights.shape);
    return {
      ofValue,
      ofQuery: query.requiresGradient ? product(scores, block.keys(keyHeads), { scale }) : undefined,
      ofKey: key.requiresGradient
        ? block.atAllKeys(product(scores, block.rows(queryHeads), { transposeA: true, scale }))
        : undefined,
    };
  });
  const of = (name: "ofQuery" | "ofKey" | "ofValue"): Tensor[] =>
    blocks.flatMap((block) => block[name] ?? []);
  return [
    unstack(graph, of("ofQuery"), shape),
    join(graph, of("ofKey"), shape),
    join(graph, of("ofValue"), shape),
  ];
}

/** What is multiplied for the gradients of the weights less their row sums: (B, heads, T, D + 1) and (B, keyValueHeads, T, D + 1). */
function centringFactors(
  graph: Graph,
  { gradient, attended, valueHeads }: AttentionGradientInputs,
  { gradientHeads, shape }: { readonly gradientHeads: Tensor; readonly shape: AttentionShape },
): { readonly left: Tensor; readonly right: Tensor } {
  const { heads, keyValueHeads, headSize, sizes } = shape;
  const [B, T] = sizes;
  const products = graph.node("Mul", [gradient, attended], attended.shape);
  const byToken = sumOfLastDimension(graph, reshape(graph, products, [B, T, heads, headSize]));
  const rowSums = transpose(graph, byToken, [0, 2, 1, 3]);
  const column = [B, keyValueHeads, T, 1];
  const minusOnes = graph.node("Expand", [graph.scalar(-1), graph.shape(column)], column);
  return {
    left: appendColumn(graph, gradientHeads, rowSums),
    right: appendColumn(graph, valueHeads, minusOnes),
  };
}

/** (…, D) and (…, 1) to (…, D + 1). */
function appendColumn(graph: Graph, x: Tensor, column: Tensor): Tensor {
  const shape = [...x.shape.slice(0, -1), (x.shape.at(-1) as number) + 1];
  return graph.node("Concat", [x, column], shape, { attributes: { axis: -1 } });
}

/** (B, T, heads * headSize) to (B, heads, T, headSize). */
function byHead(graph: Graph, x: Tensor, { heads, headSize, sizes }: AttentionShape): Tensor {
  const [B, T] = sizes;
  return transpose(graph, reshape(graph, detach(x), [B, T, heads, headSize]), [0, 2, 1, 3]);
}

/** What blocks give for their rows, (B, keyValueHeads, rows, headSize) each, to (B, T, heads * headSize). */
function unstack(graph: Graph, blocks: readonly Tensor[], shape: AttentionShape): Tensor | undefined {
  if (blocks.length === 0) return undefined;
  const { heads, headSize, sizes } = shape;
  const [B, T] = sizes;
  const rest = -1;
  const parts = blocks.map((rows) => reshape(graph, rows, [B, heads, rest, headSize]));
  const whole = [B, heads, T, headSize];
  const all = parts.length === 1 ? parts : [graph.node("Concat", parts, whole, { attributes: { axis: 2 } })];
  const byToken = transpose(graph, { ...(all[0] as Tensor), shape: whole }, [0, 2, 1, 3]);
  return reshape(graph, byToken, [B, T, heads * headSize]);
}

/** What blocks give for all keys, (B, keyValueHeads, T, headSize) each, added up: (B, T, keyValueHeads * headSize). */
function join(graph: Graph, blocks: readonly Tensor[], shape: AttentionShape): Tensor | undefined {
  if (blocks.length === 0) return undefined;
  const { keyValueHeads, headSize, sizes } = shape;
  const [B, T] = sizes;
  const whole = [B, keyValueHeads, T, headSize];
  const sum = blocks.length === 1 ? (blocks[0] as Tensor) : graph.node("Sum", blocks, whole);
  const byToken = transpose(graph, { ...sum, shape: whole }, [0, 2, 1, 3]);
  return reshape(graph, byToken, [B, T, keyValueHeads * headSize]);
}
