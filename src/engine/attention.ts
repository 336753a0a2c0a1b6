/**
 * Causal grouped-query attention over whole sequences, for training. `GroupQueryAttention` of ONNX Runtime computes the
 * way there: it takes the softmax of each row only as far as the row may look. A mask that is added instead makes the
 * softmax of what is hidden as slow as arithmetic with denormal numbers, some ten times slower than the rest.
 */
import { type AttentionShape, type AttentionValues, attentionGradients } from "./attention-gradients.ts";
import type { Attribute, Graph, Tensor } from "./graph.ts";
import { attentionWidth, narrow, narrowHeads, widenHeads } from "./head-width.ts";
import type { Keep } from "./keep.ts";
import { detach, reshape, transpose } from "./operators.ts";

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
  /** As of `attentionBlocks`, for the way back; absent: one block. */
  readonly blockEnds?: Tensor | undefined;
}

/**
 * softmax(q k^T / sqrt(headSize)) v for each head, every token looking at itself and those before: (B, T, heads * headSize).
 * What `keep` keeps of it is enough for the way back; without, all is computed there.
 */
export function attention(
  graph: Graph,
  inputs: AttentionInputs,
  { keep, ...shape }: AttentionShape & { readonly keep?: Keep | undefined },
): Tensor {
  const { query, key, value } = inputs;
  const computed = computeAttention(graph, inputs, shape);
  const values = (): AttentionValues => (kept ? { ...kept, ...headsOf(graph, inputs, shape) } : computed);
  const attended = graph.withBackward(computed.attended, [query, key, value], (gradient) =>
    attentionGradients(graph, { ...inputs, ...values(), gradient }, shape),
  );
  const kept = keep && {
    attended: keep(attended, "attended"),
    weights: keep(computed.weights, "weights"),
  };
  return kept?.attended ?? attended;
}

/** Keys and values by head, as the way there gives them too. */
function headsOf(
  graph: Graph,
  { key, value }: Pick<AttentionInputs, "key" | "value">,
  { keyValueHeads, headSize, sizes: [B, T] }: AttentionShape,
): Pick<AttentionValues, "keyHeads" | "valueHeads"> {
  const split = (x: Tensor): Tensor => {
    const byToken = reshape(graph, detach(x), [B, T, keyValueHeads, headSize]);
    return transpose(graph, byToken, [0, 2, 1, 3]);
  };
  return { keyHeads: split(key), valueHeads: split(value) };
}

function computeAttention(
  graph: Graph,
  { query, key, value, ends }: AttentionInputs,
  { heads, keyValueHeads, headSize, sizes }: AttentionShape,
): AttentionValues {
  const [B, T] = sizes;
  const width = attentionWidth(headSize);
  const widen = (x: Tensor, count: number): Tensor => widenHeads(graph, x, { count, headSize, sizes });
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
  const attended = narrowHeads(graph, output, { count: heads, headSize, sizes });
  const [narrowKeys, narrowValues] = [keyHeads, valueHeads].map((x) => narrow(graph, x, headSize));
  return { attended, weights, keyHeads: narrowKeys as Tensor, valueHeads: narrowValues as Tensor };
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
