/**
 * Time of training and sampling from the shape of a model and the measured speed of matrix products
 * (`product-probe.ts`). What is not a product (norms, softmax, activations) is contained in a share of that speed, fitted
 * to measured steps (docs/training-memory.md).
 */

import type { TrainedShape } from "./memory-estimate.ts";
import { headSize, type ModelOptions } from "./model-options.ts";

/** What was measured on this machine. */
export interface MachineSpeed {
  /** Floating-point operations a second in products of many rows, and of as many rows as sequences are sampled at once. */
  readonly training: number;
  readonly sampling: number;
}

/** The share of the speed of products that a whole training step reaches, and a step of sampling. */
const trainingShare = 0.67;
const samplingShare = 0.6;
/** Seconds to update one weight: about 30 bytes are read and written. */
const updateSeconds = 8e-9;

/** Seconds of one update on `tokens` tokens in sequences of `time`, of which `selected` pass through the output layer. */
export function trainingSeconds(
  shape: TrainedShape,
  work: {
    readonly tokens: number;
    readonly time: number;
    readonly selected: number;
    readonly keptLayers: number;
  },
  speed: MachineSpeed,
): number {
  const { model } = shape;
  const { tokens, time, selected, keptLayers } = work;
  const isWhole = shape.trained === shape.parameters;
  // There, back to the inputs, and back to the weights: adapters are too small to count.
  const passes = isWhole ? 3 : 2;
  const again = model.layers - Math.min(model.layers, keptLayers);
  const weights = 2 * layerWeights(model);
  const attended = 2 * model.heads * headSize(model) * time;
  // Attention: two products there, two again with four back.
  const layers = model.layers * (passes * weights + 7 * attended) + again * (weights + 2 * attended);
  const head = passes * 2 * model.width * model.vocabularySize;
  return (
    (tokens * layers + selected * head) / (trainingShare * speed.training) + updateSeconds * shape.trained
  );
}

/** Seconds to sample `tokens` tokens in all, `slots` at once, in a context of `context` tokens on average. */
export function samplingSeconds(
  model: ModelOptions,
  work: { readonly tokens: number; readonly prefilled: number; readonly context: number },
  speed: MachineSpeed,
): number {
  const attention = 4 * model.layers * model.heads * headSize(model) * work.context;
  const layers = 2 * model.layers * layerWeights(model);
  const decoded = layers + attention + 2 * model.width * model.vocabularySize;
  const prefill = (work.prefilled * (layers + attention)) / (trainingShare * speed.training);
  return (work.tokens * decoded) / (samplingShare * speed.sampling) + prefill;
}

/** Weights of the matrices of one layer. */
function layerWeights(model: ModelOptions): number {
  const { width, heads, keyValueHeads, feedForward } = model;
  return width * ((2 * heads + 2 * keyValueHeads) * headSize(model) + 3 * feedForward);
}
