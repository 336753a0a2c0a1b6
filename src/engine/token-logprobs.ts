/**
 * The log-probability of one index of each row under a softmax over very many, whose matrix comes in parts. Each part has a
 * softmax of its own while it is in the processor's caches, and its log of the sum of exponentials brings the parts
 * together; no number is kept of a row but its probabilities, from which the way back starts.
 */
import type { Dimension, Graph, Tensor } from "./graph.ts";

/**
 * log softmax(x W^T) at `indexes` (M), each from 0 to V - 1 (nothing notices another one): (M). x is (M, D); `parts` are the rows of W (V, D), one part after the other, and
 * gradients belong to the parts.
 */
export function tokenLogprobs(
  graph: Graph,
  x: Tensor,
  { parts, indexes }: { readonly parts: readonly Tensor[]; readonly indexes: Tensor },
): Tensor {
  const [rows] = x.shape as [Dimension];
  const places = placesInParts(graph, indexes, parts);
  const softmaxes = parts.map((part, index) =>
    partialSoftmax(graph, x, { part, column: places.columns[index] as Tensor }),
  );
  const [logits, sums] = joinPairs(
    graph,
    softmaxes.map(({ logitAndSum }) => logitAndSum),
  );
  const wide = [rows, parts.length];
  const own = graph.node("Where", [places.isInside, logits, graph.scalar(0)], wide);
  const logit = reduce(graph, "ReduceSum", own);
  const logSum = reduce(graph, "ReduceLogSumExp", sums);
  const column = graph.node("Sub", [logit, logSum], [rows, 1]);
  const output = graph.node("Squeeze", [column, graph.integers([1])], [rows]);
  return graph.withBackward(output, [x, ...parts], (gradient) => {
    // d logprob / d logits = onehot(index) - softmax(logits), and a part's softmax is its share of the whole.
    const ofRow = graph.node("Unsqueeze", [gradient, graph.integers([1])], [rows, 1]);
    const shares = graph.node("Exp", [graph.node("Sub", [sums, logSum], wide)], wide);
    const factors = graph.node("Mul", [shares, graph.node("Neg", [ofRow], [rows, 1])], wide);
    const updates = graph.node("Where", [places.isInside, ofRow, graph.scalar(0)], wide);
    const [factorOf, updateOf] = [factors, updates].map((all) => columnsOf(graph, all)) as [
      Tensor[],
      Tensor[],
    ];
    let ofX: Tensor | undefined;
    const ofParts = parts.map((part, index) => {
      const { probabilities } = softmaxes[index] as PartialSoftmax;
      const scaled = graph.node("Mul", [probabilities, factorOf[index] as Tensor], probabilities.shape);
      const ofLogits = graph.node(
        "ScatterElements",
        [scaled, places.columns[index] as Tensor, updateOf[index] as Tensor],
        probabilities.shape,
        { attributes: { axis: 1, reduction: "add" } },
      );
      if (x.requiresGradient)
        ofX = graph.node("Gemm", ofX ? [ofLogits, part, ofX] : [ofLogits, part], x.shape);
      return part.requiresGradient
        ? graph.node("Gemm", [ofLogits, x], part.shape, { attributes: { transA: 1 } })
        : undefined;
    });
    return [ofX, ...ofParts];
  });
}

interface PartialSoftmax {
  /** Softmax over the part alone (M, size). */
  readonly probabilities: Tensor;
  /** The logit at a column of each row, and the log of the sum of the part's exponentials (M, 2). */
  readonly logitAndSum: Tensor;
}

function partialSoftmax(
  graph: Graph,
  x: Tensor,
  { part, column }: { readonly part: Tensor; readonly column: Tensor },
): PartialSoftmax {
  const [rows] = x.shape as [Dimension];
  const [size] = part.shape as [Dimension];
  const logits = graph.node("Gemm", [x, part], [rows, size], { attributes: { transB: 1 } });
  const probabilities = graph.node("Softmax", [logits], logits.shape, { attributes: { axis: -1 } });
  // The largest probability is that of the largest logit: exp(0) over the sum.
  const largest = graph.node("Log", [reduce(graph, "ReduceMax", probabilities)], [rows, 1]);
  const logSum = graph.node("Sub", [reduce(graph, "ReduceMax", logits), largest], [rows, 1]);
  const logit = graph.node("GatherElements", [logits, column], [rows, 1], { attributes: { axis: 1 } });
  // One value of both: ONNX Runtime goes through a part as a whole then, so that its logits need not stay.
  const logitAndSum = graph.node("Concat", [logit, logSum], [rows, 2], { attributes: { axis: 1 } });
  return { probabilities, logitAndSum };
}

/** (M, 2) each to the first and to the second of all (M, parts). */
function joinPairs(graph: Graph, pairs: readonly Tensor[]): readonly [Tensor, Tensor] {
  const [rows] = (pairs[0] as Tensor).shape as [Dimension];
  const wide = [rows, pairs.length];
  const all =
    pairs.length === 1
      ? (pairs[0] as Tensor)
      : graph.node("Concat", pairs, [rows, 2 * pairs.length], { attributes: { axis: 1 } });
  const every = (first: number): Tensor => {
    const [start, end, axis, step] = [first, 2 * pairs.length, 1, 2].map((value) => graph.integers([value]));
    return graph.node("Slice", [all, start, end, axis, step] as Tensor[], wide);
  };
  return [every(0), every(1)];
}

interface PlacesInParts {
  /** Of each part: the column of each row's index (M, 1), or its nearest one where the index lies in another part. */
  readonly columns: readonly Tensor[];
  /** (M, parts) */
  readonly isInside: Tensor;
}

function placesInParts(graph: Graph, indexes: Tensor, parts: readonly Tensor[]): PlacesInParts {
  const [rows] = indexes.shape as [Dimension];
  const sizes = parts.map(({ shape: [size] }) => size as number);
  const starts = sizes.map((_, index) => sizes.slice(0, index).reduce((a, b) => a + b, 0));
  const wide = [rows, parts.length];
  const integers = (operator: string, ...inputs: Tensor[]): Tensor =>
    graph.node(operator, inputs, wide, { type: "int64" });
  const column = graph.node("Unsqueeze", [indexes, graph.integers([1])], [rows, 1], { type: "int64" });
  const places = integers("Sub", column, graph.integers(starts));
  const last = graph.integers(sizes.map((size) => size - 1));
  const nearest = integers("Min", integers("Max", places, graph.integers([0])), last);
  return { columns: columnsOf(graph, nearest), isInside: graph.node("Equal", [places, nearest], wide) };
}

/** (M, parts) to (M, 1) each. */
function columnsOf(graph: Graph, x: Tensor): Tensor[] {
  const [rows, count] = x.shape as [Dimension, number];
  if (count === 1) return [x];
  const ones = new Array<number>(count).fill(1);
  return graph.nodesWithOutputs(
    "Split",
    [x, graph.integers(ones)],
    ones.map(() => [rows, 1]),
    { type: x.type, attributes: { axis: 1 } },
  );
}

/** Over the last dimension, which stays with size 1. */
function reduce(graph: Graph, operator: "ReduceSum" | "ReduceMax" | "ReduceLogSumExp", x: Tensor): Tensor {
  return graph.node(operator, [x, graph.integers([-1])], [x.shape[0] as Dimension, 1], {
    attributes: { keepdims: 1 },
  });
}
