/**
 * Time of training and sampling from the shape of a model and the measured speed of matrix products
 * (`product-probe.ts`). What is not a product (softmax, norms, activations) counts as so many operations of products a
 * number, fitted to measured steps (docs/LOG.md).
 */

import { leastTimeOfBlocks } from "./attention-blocks.ts";
import type { TrainedShape } from "./memory-estimate.ts";
import { headSize, type ModelOptions } from "./model-options.ts";

/** What was measured on this machine. */
export interface MachineSpeed {
  /** Floating-point operations a second in products of many rows, and of as many rows as sequences are sampled at once. */
  readonly training: number;
  readonly sampling: number;
}

/** Operations there and back for each attention score, and for each number of the wide vectors of a layer: fewer where these stay in caches. */
const scoreOperations = 300;
const vectorOperations = { layered: 690, whole: 135 };
/** The share of attention that a large model computes, whose queries go in blocks over the keys that they see. */
const seenShare = 0.7;
/** Heads narrower than this multiply more slowly, in proportion, where they wait for memory. */
const fullHeadSize = 64;
/** The share of the speed of products that reading a prompt reaches, and a step of sampling. */
const prefillShare = 0.67;
const samplingShare = 0.6;
/** Times the speed of products that two micro-batches of a large model reach side by side: their threads wait less for each other. */
const lanesGain = 1.25;
/** Seconds to update one weight: about 40 bytes are read and written by all threads, or 16 more by one where moments lie on disk. */
const updateSeconds = 3e-9;
const diskUpdateSeconds = 13e-9;

/** Whole sequences that go through the model. */
export interface SequenceWork {
  readonly tokens: number;
  /** Tokens of a sequence. */
  readonly time: number;
  /** Tokens that pass through the output layer. */
  readonly selected: number;
  /** Of `tokens`, those that are computed once with another sequence's, but for attention; absent: none. */
  readonly shared?: number;
  /** As of `TrainingPlan`; absent: no. */
  readonly inOneRun?: boolean;
  readonly keepsAttention?: boolean;
  /** As of `TrainingPlan`; absent: 1. */
  readonly lanes?: number;
}

/** Seconds of one update on sequences. */
export function trainingSeconds(
  shape: TrainedShape,
  work: SequenceWork & { readonly keptLayers: number },
  speed: MachineSpeed,
): number {
  const { model, trained } = shape;
  const { tokens, selected, keptLayers, shared = 0, inOneRun = false, keepsAttention = false } = work;
  const gain = !inOneRun && (work.lanes ?? 1) > 1 ? lanesGain : 1;
  const trainsAll = trained === shape.parameters;
  // There, back to the inputs, and back to the weights: adapters are too small to count.
  const passes = trainsAll ? 3 : 2;
  const again = model.layers - Math.min(model.layers, keptLayers);
  const { weights, attended, scores, vectors, head } = operationsOf(model, work);
  // Attention: two products there, both again unless all is kept, and four back.
  const products = inOneRun || keepsAttention ? 6 : 8;
  const ofRows = model.layers * (passes * weights + vectors) + again * (weights + vectors / 3);
  const ofPlaces = model.layers * (products * attended + scores) + again * (2 * attended + scores / 3);
  const update = (shape.momentsOnDisk ? diskUpdateSeconds : updateSeconds) * trained;
  const layers = (tokens - shared) * ofRows + tokens * seenOf(work) * ofPlaces;
  return (layers + selected * passes * head) / (gain * speed.training) + update;
}

/** Seconds to ask for log-probabilities or values of sequences: there and not back. */
export function inferenceSeconds(
  { model }: Pick<TrainedShape, "model">,
  work: SequenceWork,
  speed: MachineSpeed,
): number {
  const { tokens, selected, shared = 0 } = work;
  const { weights, attended, scores, vectors, head } = operationsOf(model, work);
  const ofPlaces = seenOf(work) * (2 * attended + scores / 3);
  const layers = (tokens - shared) * (weights + vectors / 3) + tokens * ofPlaces;
  return (model.layers * layers + selected * head) / speed.training;
}

/** The share of attention that is computed. */
function seenOf({ inOneRun = false, time }: SequenceWork): number {
  return inOneRun || time < leastTimeOfBlocks ? 1 : seenShare;
}

/**
 * Operations for each token: of one layer's products there, of one of its two products of attention, of what is no product
 * there and back, by attention's scores and by vectors; and of the head there.
 */
function operationsOf(
  model: ModelOptions,
  { time, inOneRun = false }: Pick<SequenceWork, "time" | "inOneRun">,
): Readonly<Record<"weights" | "attended" | "scores" | "vectors" | "head", number>> {
  const { heads, width, feedForward, vocabularySize } = model;
  const size = headSize(model);
  return {
    weights: 2 * layerWeights(model),
    attended: 2 * heads * size * time * (inOneRun ? 1 : Math.max(1, fullHeadSize / size)),
    scores: scoreOperations * heads * time,
    vectors: vectorOperations[inOneRun ? "whole" : "layered"] * 7 * (width + feedForward),
    head: 2 * width * vocabularySize,
  };
}

/**
 * Scores of attention that cost as much, there and back, as all of a layer beside them does for one token. Whether attention is
 * kept does not count: it would cut a batch otherwise, and keeping is to change no bit of the gradient.
 */
export function scoresPerToken(model: ModelOptions): number {
  const { weights, attended, scores, vectors } = operationsOf(model, { time: 1 });
  return (3 * weights + vectors) / (8 * attended + scores);
}

/** Seconds that a sampled token costs beside products: choosing it, spelling it, keeping its keys and values. */
const sampledTokenSeconds = 50e-6;

/** Seconds to sample `tokens` tokens in all, `slots` at once, in a context of `context` tokens on average. */
export function samplingSeconds(
  model: ModelOptions,
  work: { readonly tokens: number; readonly prefilled: number; readonly context: number },
  speed: MachineSpeed,
): number {
  const attention = 4 * model.layers * model.heads * headSize(model) * work.context;
  const layers = 2 * model.layers * layerWeights(model);
  const decoded = layers + attention + 2 * model.width * model.vocabularySize;
  const prefill = (work.prefilled * (layers + attention)) / (prefillShare * speed.training);
  return work.tokens * (decoded / (samplingShare * speed.sampling) + sampledTokenSeconds) + prefill;
}

/** Weights of the matrices of one layer. */
function layerWeights(model: ModelOptions): number {
  const { width, heads, keyValueHeads, feedForward } = model;
  return width * ((2 * heads + 2 * keyValueHeads) * headSize(model) + 3 * feedForward);
}
