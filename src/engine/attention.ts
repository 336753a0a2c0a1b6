/** Causal grouped-query attention over whole sequences, for training: the way there (`attention-values.ts`) and the way back. */
import { type AttentionShape, type AttentionValues, attentionGradients } from "./attention-gradients.ts";
import { type AttentionInputs, attentionValues } from "./attention-values.ts";
import type { Graph, Tensor } from "./graph.ts";
import type { Keep } from "./keep.ts";
import { detach, reshape, transpose } from "./operators.ts";

/**
 * softmax(q k^T / sqrt(headSize)) v for each head, every token looking at itself and those before: (B, T, heads * headSize).
 * What `keep` keeps of it is enough for the way back; without, all is computed there.
 */
export function attention(
  graph: Graph,
  inputs: AttentionInputs,
  { keep, ...shape }: AttentionShape & { readonly keep?: Keep | undefined },
): Tensor {
  const { query, key, value, blocks } = inputs;
  const computed = attentionValues(graph, inputs, shape);
  const values = (): AttentionValues => (kept ? { ...kept, ...headsOf(graph, inputs, shape) } : computed);
  const attended = graph.withBackward(computed.attended, [query, key, value], (gradient) =>
    attentionGradients(graph, { ...inputs, ...values(), gradient, blockEnds: blocks?.ends }, shape),
  );
  const kept = keep && {
    attended: keep(attended, "attended"),
    weights: computed.weights.map((weights, block) => keep(weights, `weights.${block}`)),
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
