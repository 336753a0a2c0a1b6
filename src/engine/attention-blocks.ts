/**
 * Blocks of attention: consecutive times of the queries of all sequences. A block looks at keys as far as its own end, so
 * that most of what attention hides is never computed. One block is all there is.
 */
import type { Dimension, Graph, Tensor } from "./graph.ts";

export interface AttentionBlock {
  /** (B, heads, T, D) to its times, query heads that share a key head stacked along time: (B, keyValueHeads, rows, D). */
  readonly rows: (x: Tensor) => Tensor;
  /** (B, keyValueHeads, T, D) to what it looks at: (B, keyValueHeads, keys, D). */
  readonly keys: (x: Tensor) => Tensor;
  /** Its weights, as of `AttentionValues`, in the order of its rows: (B, keyValueHeads, rows, keys). */
  readonly weights: (x: Tensor) => Tensor;
  /** The inverse of `keys`, with zeros for what it does not look at. */
  readonly atAllKeys: (x: Tensor) => Tensor;
}

interface BlockShape {
  readonly heads: number;
  readonly keyValueHeads: number;
  readonly sizes: readonly [B: Dimension, T: Dimension];
}

/** Sequences of fewer tokens are not worth the cuts. */
export const leastTimeOfBlocks = 192;
const blocksOfLong = 4;

/** Where blocks of attention over sequences of `time` tokens end. */
export function blockEndsOf(time: number): number[] {
  const blocks = time < leastTimeOfBlocks ? 1 : blocksOfLong;
  return Array.from({ length: blocks }, (_, index) => Math.ceil(((index + 1) * time) / blocks));
}

/** Keys that a query of such sequences has a weight for, on average: those its block looks at. */
export function keysOfQuery(time: number): number {
  const ends = blockEndsOf(time);
  const weights = ends.reduce((sum, end, index) => sum + (end - (ends[index - 1] ?? 0)) * end, 0);
  return weights / time;
}

/** Where a block starts and ends, integers (1). */
export interface BlockTimes {
  readonly start: Tensor;
  readonly end: Tensor;
}

/** The times of blocks that end at `ends` (blocks), integers of which the last is T. */
export function blockTimes(graph: Graph, ends: Tensor): readonly BlockTimes[] {
  const ones = new Array<number>(ends.shape[0] as number).fill(1);
  const parts = graph.nodesWithOutputs(
    "Split",
    [ends, graph.integers(ones)],
    ones.map((one) => [one]),
    { type: "int64", attributes: { axis: 0 } },
  );
  return parts.map((end, index) => ({ start: parts[index - 1] ?? graph.integers([0]), end }));
}

/** Blocks that end at the times `ends`, as of `blockTimes`; absent: one. */
export function attentionBlocks(
  graph: Graph,
  shape: BlockShape,
  ends: Tensor | undefined,
): readonly AttentionBlock[] {
  if (ends === undefined) return [wholeBlock(graph, shape)];
  return blockTimes(graph, ends).map((times, index) =>
    partialBlock(graph, shape, { ...times, name: `${index}` }),
  );
}
function wholeBlock(graph: Graph, { keyValueHeads }: BlockShape): AttentionBlock {
  const same = (x: Tensor): Tensor => x;
  return {
    rows: (x) => stackHeads(graph, x, { keyValueHeads, name: "all" }),
    keys: same,
    weights: (x) => stackHeads(graph, x, { keyValueHeads, name: "all" }),
    atAllKeys: same,
  };
}

function partialBlock(
  graph: Graph,
  { heads, keyValueHeads, sizes: [B, T] }: BlockShape,
  { start, end, name }: BlockTimes & { readonly name: string },
): AttentionBlock {
  const [times, seen, rows] = [`times.${name}`, `keys.${name}`, `rows.${name}`];
  const concat = (parts: readonly Tensor[], size: number): Tensor =>
    graph.node("Concat", parts, [size], { type: "int64", attributes: { axis: 0 } });
  const slice = (x: Tensor, axes: readonly number[], shape: readonly Dimension[], from: Tensor, to: Tensor) =>
    graph.node("Slice", [x, from, to, graph.integers(axes)], shape);
  const zero = graph.integers([0]);
  return {
    rows: (x) => {
      const D = x.shape[3] as Dimension;
      const cut = slice(x, [2], [B, heads, times, D], start, end);
      return stackHeads(graph, cut, { keyValueHeads, name: rows });
    },
    keys: (x) => slice(x, [2], [B, keyValueHeads, seen, x.shape[3] as Dimension], zero, end),
    weights: (x) => {
      const shape = concat([graph.shape([B, keyValueHeads, rest]), end], 4);
      return graph.node("Reshape", [x, shape], [B, keyValueHeads, rows, seen]);
    },
    atAllKeys: (x) => {
      const hidden = graph.node("Sub", [graph.shape([T]), end], [1], { type: "int64" });
      const pads = concat([graph.integers(new Array<number>(6).fill(0)), hidden, zero], 8);
      return graph.node("Pad", [x, pads], [B, keyValueHeads, T, x.shape[3] as Dimension]);
    },
  };
}

/** In a shape: as many as are left. */
const rest = -1;

/** (B, heads, T, D) to (B, keyValueHeads, rows, D). */
function stackHeads(
  graph: Graph,
  x: Tensor,
  { keyValueHeads, name }: { readonly keyValueHeads: number; readonly name: string },
): Tensor {
  const [B, , , D] = x.shape as [Dimension, Dimension, Dimension, Dimension];
  return graph.node("Reshape", [x, graph.shape([B, keyValueHeads, rest, D])], [B, keyValueHeads, name, D]);
}
