/**
 * Memory that a model needs, from its shape alone: a first answer before anything is loaded. Weights are float32. What a
 * training step really needs depends on the length of its sequences; this counts one micro-batch of `tokens`.
 */
import { headSize, type ModelOptions, parameterCount } from "./model-options.ts";

const floatBytes = 4;

/** Weights twice (our arrays and the copy that is packed for fast products), keys and values of all slots. */
export function samplingBytes(
  model: ModelOptions,
  { slots, tokens }: { readonly slots: number; readonly tokens: number },
): number {
  const { layers, keyValueHeads, vocabularySize } = model;
  const cache = 2 * layers * keyValueHeads * headSize(model) * slots * tokens;
  const logits = 2 * slots * vocabularySize;
  return floatBytes * (2 * parameterCount(model) + cache + logits);
}

/**
 * Weights, gradients, two moments; and for a micro-batch of `sequences` of `tokens` each, what the way back needs of the
 * way there: about nine vectors of the width, four of the feed-forward layer, the heads' vectors, and one matrix of
 * attention weights a layer; two such matrices more, and logits three times, at the widest place.
 */
export function trainingBytes(
  model: ModelOptions,
  { sequences, tokens }: { readonly sequences: number; readonly tokens: number },
): number {
  const { layers, width, heads, keyValueHeads, feedForward, vocabularySize } = model;
  const size = headSize(model);
  const vectors = 9 * width + 4 * feedForward + (4 * heads + 4 * keyValueHeads) * size;
  const scores = heads * tokens;
  const perToken = layers * (vectors + scores) + 2 * scores + 3 * vocabularySize;
  return floatBytes * (4 * parameterCount(model) + sequences * tokens * perToken);
}
