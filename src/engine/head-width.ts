/** `GroupQueryAttention` takes heads that are some eights wide: others have columns of 0 added, which change nothing, and taken away again. */
import type { Dimension, Graph, Tensor } from "./graph.ts";
import { reshape } from "./operators.ts";

/** The width of a head with the columns that are added. */
export const attentionWidth = (headSize: number): number => 8 * Math.ceil(headSize / 8);

interface Heads {
  readonly count: number;
  readonly headSize: number;
  /** Sequences and tokens of a sequence. */
  readonly sizes: readonly [Dimension, Dimension];
}

/** (B, T, count * headSize) to (B, T, count * attentionWidth). */
export function widenHeads(graph: Graph, x: Tensor, { count, headSize, sizes }: Heads): Tensor {
  const width = attentionWidth(headSize);
  if (width === headSize) return x;
  const byHead = reshape(graph, x, [...sizes, count, headSize]);
  const before = [0, 0, 0, 0];
  const pads = graph.integers([...before, 0, 0, 0, width - headSize]);
  return reshape(graph, graph.node("Pad", [byHead, pads], [...sizes, count, width]), [
    ...sizes,
    count * width,
  ]);
}

/** (B, T, count * attentionWidth) to (B, T, count * headSize). */
export function narrowHeads(graph: Graph, x: Tensor, { count, headSize, sizes }: Heads): Tensor {
  const width = attentionWidth(headSize);
  if (width === headSize) return x;
  const byHead = reshape(graph, x, [...sizes, count, width]);
  return reshape(graph, narrow(graph, byHead, headSize), [...sizes, count * headSize]);
}

/** The first columns of each row, where there are more. */
export function narrow(graph: Graph, x: Tensor, columns: number): Tensor {
  if (x.shape.at(-1) === columns) return x;
  const [from, to, last] = [graph.integers([0]), graph.integers([columns]), graph.integers([-1])];
  return graph.node("Slice", [x, from, to, last], [...x.shape.slice(0, -1), columns]);
}
