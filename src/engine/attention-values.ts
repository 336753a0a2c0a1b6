/**
 * The way there of causal grouped-query attention over whole sequences, for training. `GroupQueryAttention` of ONNX Runtime
 * takes the softmax of each row only as far as the row may look. A mask that is added instead makes the softmax of what is
 * hidden as slow as arithmetic with denormal numbers, some ten times slower than the rest.
 */
import { blockTimes } from "./attention-blocks.ts";
import type { AttentionShape, AttentionValues } from "./attention-gradients.ts";
import type { Dimension, Graph, Tensor } from "./graph.ts";
import { attentionWidth, narrow, narrowHeads, widenHeads } from "./head-width.ts";
import { reshape, transpose } from "./operators.ts";

/** What `GroupQueryAttention` asks for besides: the last position of each sequence (B) and the number of tokens (1), int32. */
export interface SequenceEnds {
  readonly lastPositions: Tensor;
  readonly tokens: Tensor;
}

/** Blocks of queries (`attention-blocks.ts`). */
export interface Blocks {
  /** (blocks) */
  readonly ends: Tensor;
  /** How many sequences there are: the graph is made for so many. */
  readonly batch: number;
}

export interface AttentionInputs {
  /** (B, T, heads * headSize); queries and keys are rotated. */
  readonly query: Tensor;
  /** (B, T, keyValueHeads * headSize) */
  readonly key: Tensor;
  readonly value: Tensor;
  readonly ends: SequenceEnds;
  /** Absent: one block. */
  readonly blocks?: Blocks | undefined;
}

export function attentionValues(
  graph: Graph,
  { query, key, value, ends, blocks }: AttentionInputs,
  shape: AttentionShape,
): AttentionValues {
  const { heads, keyValueHeads, headSize, sizes } = shape;
  const [B, T] = sizes;
  const width = attentionWidth(headSize);
  const widen = (x: Tensor, count: number): Tensor => widenHeads(graph, x, { count, headSize, sizes });
  const wide = {
    query: widen(query, heads),
    key: widen(key, keyValueHeads),
    value: widen(value, keyValueHeads),
  };
  const computed = blocks
    ? computeInBlocks(graph, { ...wide, blocks }, { ...shape, width })
    : computeAtOnce(graph, { ...wide, ends }, { ...shape, width });
  const keysShape = [B, keyValueHeads, T, width];
  return {
    attended: narrowHeads(graph, computed.attended, { count: heads, headSize, sizes }),
    weights: computed.weights,
    keyHeads: narrow(graph, { ...computed.keyHeads, shape: keysShape }, headSize),
    valueHeads: narrow(graph, { ...computed.valueHeads, shape: keysShape }, headSize),
  };
}

interface WideShape extends AttentionShape {
  /** Of a head, as the operator takes it. */
  readonly width: number;
}

function computeAtOnce(
  graph: Graph,
  inputs: Pick<AttentionInputs, "query" | "key" | "value" | "ends">,
  shape: WideShape,
): AttentionValues {
  const [batch, times] = shape.sizes;
  const { lastPositions, tokens } = inputs.ends;
  const call = { ...inputs, lastPositions, tokens };
  const { weights, ...values } = groupQueryAttention(graph, call, { ...shape, batch, times, keys: times });
  return { ...values, weights: [weights] };
}

/** The operator takes several queries after others for one sequence only: those of a batch go into it side by side, as heads of one. */
function computeInBlocks(
  graph: Graph,
  inputs: Pick<AttentionInputs, "query" | "key" | "value"> & { readonly blocks: Blocks },
  { heads, keyValueHeads, sizes: [B, T], width, ...shape }: WideShape,
): AttentionValues {
  const { batch, ends } = inputs.blocks;
  const beside = (x: Tensor): Tensor => sideBySide(graph, x, batch);
  const [query, key, value] = [beside(inputs.query), beside(inputs.key), beside(inputs.value)];
  const one = graph.integers([1]);
  const together = { ...shape, width, heads: batch * heads, keyValueHeads: batch * keyValueHeads };
  let past: GroupedValues | undefined;
  const blocks = blockTimes(graph, ends).map(({ start, end }, index) => {
    const [times, keys] = [`times.${index}`, `keys.${index}`];
    const cut = (x: Tensor): Tensor =>
      graph.node("Slice", [x, start, end, one], [1, times, x.shape[2] as Dimension]);
    const last = graph.node("Sub", [end, one], [1], { type: "int64" });
    const call = {
      query: cut(query),
      key: cut(key),
      value: cut(value),
      past,
      lastPositions: toInt32(graph, last),
      tokens: toInt32(graph, end),
    };
    past = groupQueryAttention(graph, call, { ...together, batch: 1, times, keys });
    return past;
  });
  const { keyHeads, valueHeads } = blocks.at(-1) as GroupedValues;
  const apart = (x: Tensor): Tensor => reshape(graph, x, [B, keyValueHeads, T, width]);
  const attended = graph.node(
    "Concat",
    blocks.map((block) => block.attended),
    [1, T, batch * heads * width],
    { attributes: { axis: 1 } },
  );
  return {
    attended: underOneAnother(graph, attended, { batch, sizes: [B, T] }),
    weights: blocks.map(({ weights }) => weights),
    keyHeads: apart(keyHeads),
    valueHeads: apart(valueHeads),
  };
}

/** (B, T, D) to (1, T, B * D). */
function sideBySide(graph: Graph, x: Tensor, batch: number): Tensor {
  if (batch === 1) return x;
  const [, T, D] = x.shape as [Dimension, Dimension, number];
  return reshape(graph, transpose(graph, x, [1, 0, 2]), [1, T, batch * D]);
}

/** The inverse of `sideBySide`. */
function underOneAnother(
  graph: Graph,
  x: Tensor,
  { batch, sizes: [B, T] }: { readonly batch: number; readonly sizes: readonly [Dimension, Dimension] },
): Tensor {
  const D = (x.shape[2] as number) / batch;
  if (batch === 1) return { ...x, shape: [B, T, D] };
  return transpose(graph, reshape(graph, x, [T, B, D]), [1, 0, 2]);
}

/** What `GroupQueryAttention` gives: keys and values are those of before and its own. */
interface GroupedValues {
  readonly attended: Tensor;
  readonly weights: Tensor;
  readonly keyHeads: Tensor;
  readonly valueHeads: Tensor;
}

interface GroupedCall extends Pick<AttentionInputs, "query" | "key" | "value">, SequenceEnds {
  readonly past?: GroupedValues | undefined;
}

function groupQueryAttention(
  graph: Graph,
  { query, key, value, past, lastPositions, tokens }: GroupedCall,
  shape: Omit<WideShape, "sizes"> & Record<"batch" | "times" | "keys", Dimension>,
): GroupedValues {
  const { heads, keyValueHeads, headSize, width, batch, times, keys } = shape;
  const afterSoftmax = 2;
  const [attended, keyHeads, valueHeads, weights] = graph.nodesWithOutputs(
    "GroupQueryAttention",
    [query, key, value, past?.keyHeads ?? absent, past?.valueHeads ?? absent, lastPositions, tokens],
    [
      [batch, times, heads * width],
      [batch, keyValueHeads, keys, width],
      [batch, keyValueHeads, keys, width],
      [batch, heads, times, keys],
    ],
    {
      domain: "com.microsoft",
      attributes: {
        num_heads: heads,
        kv_num_heads: keyValueHeads,
        scale: { float: 1 / Math.sqrt(headSize) },
        qk_output: afterSoftmax,
      },
    },
  ) as [Tensor, Tensor, Tensor, Tensor];
  return { attended, weights, keyHeads, valueHeads };
}

/** An optional input that is not given. */
const absent: Tensor = { name: "", shape: [], type: "float32", requiresGradient: false };

function toInt32(graph: Graph, x: Tensor): Tensor {
  const int32 = 6;
  return graph.node("Cast", [x], x.shape, { type: "int32", attributes: { to: int32 } });
}
