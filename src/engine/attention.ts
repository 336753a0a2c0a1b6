/**
 * Causal grouped-query attention over whole sequences, for training. `GroupQueryAttention` of ONNX Runtime computes the
 * way there: it takes the softmax of each row only as far as the row may look. A mask that is added instead makes the
 * softmax of what is hidden as slow as arithmetic with denormal numbers, some ten times slower than the rest.
 */
import { type AttentionShape, type AttentionValues, attentionGradients } from "./attention-gradients.ts";
import type { Attribute, Graph, Tensor } from "./graph.ts";
import { reshape } from "./operators.ts";

const microsoft = "com.microsoft";

/** What `GroupQueryAttention` asks for besides: the last position of each sequence (B) and the number of tokens (1), int32. */
export interface SequenceEnds {
  readonly lastPositions: Tensor;
  readonly tokens: Tensor;
}

export interface AttentionInputs {
  /** (B, T, heads * headSize); queries and keys are rotated. */
  readonly query: Tensor;
  /** (B, T, keyValueHeads * headSize) */
  readonly key: Tensor;
  readonly value: Tensor;
  readonly ends: SequenceEnds;
}

/** softmax(q k^T / sqrt(headSize)) v for each head, every token looking at itself and those before: (B, T, heads * headSize). */
export function attention(graph: Graph, inputs: AttentionInputs, shape: AttentionShape): Tensor {
  const { query, key, value } = inputs;
  const computed = computeAttention(graph, inputs, shape);
  return graph.withBackward(computed.attended, [query, key, value], (gradient) =>
    attentionGradients(graph, { ...inputs, ...computed, gradient }, shape),
  );
}

/** Heads must be some eights wide; others have columns of 0 added, which change nothing, and taken away again. */
function computeAttention(
  graph: Graph,
  { query, key, value, ends }: AttentionInputs,
  { heads, keyValueHeads, headSize, sizes }: AttentionShape,
): AttentionValues {
  const [B, T] = sizes;
  const width = 8 * Math.ceil(headSize / 8);
  const widen = (x: Tensor, count: number): Tensor => {
    if (width === headSize) return x;
    const byHead = reshape(graph, x, [B, T, count, headSize]);
    const before = [0, 0, 0, 0];
    const pads = graph.integers([...before, 0, 0, 0, width - headSize]);
    return reshape(graph, graph.node("Pad", [byHead, pads], [B, T, count, width]), [B, T, count * width]);
  };
  const narrow = (x: Tensor): Tensor => {
    if (width === headSize) return x;
    const [from, to, last] = [graph.integers([0]), graph.integers([headSize]), graph.integers([-1])];
    return graph.node("Slice", [x, from, to, last], [...x.shape.slice(0, -1), headSize]);
  };
  const [output, keyHeads, valueHeads, weights] = graph.nodesWithOutputs(
    "GroupQueryAttention",
    [
      widen(query, heads),
      widen(key, keyValueHeads),
      widen(value, keyValueHeads),
      ...[absent, absent],
      ...[ends.lastPositions, ends.tokens],
    ],
    [
      [B, T, heads * width],
      [B, keyValueHeads, T, width],
      [B, keyValueHeads, T, width],
      [B, heads, T, T],
    ],
    { domain: microsoft, attributes: attentionAttributes({ heads, keyValueHeads, headSize }) },
  ) as [Tensor, Tensor, Tensor, Tensor];
  const attended =
    width === headSize
      ? output
      : reshape(graph, narrow(reshape(graph, output, [B, T, heads, width])), [B, T, heads * headSize]);
  return { attended, weights, keyHeads: narrow(keyHeads), valueHeads: narrow(valueHeads) };
}

function attentionAttributes(
  shape: Pick<AttentionShape, "heads" | "keyValueHeads" | "headSize">,
): Readonly<Record<string, Attribute>> {
  const afterSoftmax = 2;
  return {
    num_heads: shape.heads,
    kv_num_heads: shape.keyValueHeads,
    scale: { float: 1 / Math.sqrt(shape.headSize) },
    qk_output: afterSoftmax,
  };
}

/** An optional input that is not given. */
const absent: Tensor = { name: "", shape: [], type: "float32", requiresGradient: false };
