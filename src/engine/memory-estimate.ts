/**
 * Memory that a model needs, from its shape alone: told before anything is loaded. All numbers are float32. What a
 * session takes beside its inputs and outputs was fitted to measured peaks (docs/training-memory.md): it is that of one
 * layer there and back, and of one piece of a head, since nothing else is computed at once.
 */
import { keysOfQuery, leastTimeOfBlocks } from "./attention-blocks.ts";
import { steppedRows, tokenBytes } from "./cache-budget.ts";
import { headSize, type ModelOptions, parameterCount } from "./model-options.ts";
import type { SamplingWeights } from "./weight-quantization.ts";

const floatBytes = 4;

/** Node with ONNX Runtime and its sessions, without a model. */
export const runtimeBytes = 105e6;

/** How a model is sampled. */
export interface SamplingShape {
  /** Sequences at once, and most tokens of each. */
  readonly slots: number;
  readonly tokens: number;
  /** Bytes that keys and values may take; absent: as many as they need. */
  readonly cacheMemory?: number;
  /** Absent: f32. */
  readonly weights?: SamplingWeights;
}

/** The model's weights, and what sampling takes beside them. */
export function samplingBytes(model: ModelOptions, shape: SamplingShape): number {
  return floatBytes * parameterCount(model) + samplerBytes(model, shape);
}

/** Bytes for each weight of the copy that is packed for fast products, with the room between its parts; of fewer bits with scales and offsets. */
const packedBytes: Readonly<Record<SamplingWeights, number>> = { f32: 5.4, int8: 2.6, int4: 1.5 };
/** Most tokens of a sequence that are read at once. */
export const prefillChunk = 256;

/** What sampling takes beside the weights: their packed copy, keys and values, and what reading a prompt computes. */
export function samplerBytes(
  model: ModelOptions,
  { slots, tokens, cacheMemory = Number.POSITIVE_INFINITY, weights = "f32" }: SamplingShape,
): number {
  const { width, heads, feedForward, vocabularySize } = model;
  const cache = Math.min(cacheMemory, tokenBytes(model) * slots * steppedRows(model, tokens));
  // Log-probabilities, and what their masses by blocks are made of.
  const logits = 4 * slots * vocabularySize;
  const perToken = 4 * width + 3 * feedForward + 2 * heads * tokens;
  const run = Math.max(slots, Math.min(prefillChunk, tokens)) * perToken;
  return Math.round(packedBytes[weights] * parameterCount(model)) + cache + floatBytes * (logits + run);
}

/** What is trained: a model, how many numbers it has in all, and how many of them have gradients and moments. */
export interface TrainedShape {
  readonly model: ModelOptions;
  readonly parameters: number;
  readonly trained: number;
  /** Whether the moments lie on disk. */
  readonly momentsOnDisk?: boolean;
}

/** A micro-batch of at most `tokens` tokens in sequences of at most `time`, of which `keptLayers` layers keep their insides. */
export interface MicroBatchShape {
  readonly tokens: number;
  readonly time: number;
  readonly keptLayers: number;
  /** Whether these keep what attention computes too, its weights among it; absent: no. */
  readonly keepsAttention?: boolean;
  /** Whether it is one run of the whole network, in which all that the way back needs stays; absent: no. */
  readonly inOneRun?: boolean;
  /** So many micro-batches are computed side by side, all but one with gradients of their own; absent: 1. */
  readonly lanes?: number;
}

/** Bytes of a training step by what they are for. */
export interface TrainingMemory {
  readonly weights: number;
  readonly gradients: number;
  readonly moments: number;
  /** Hidden states between layers, and what the first `keptLayers` layers keep. */
  readonly activations: number;
  /** Inside the sessions of a layer and of the head. */
  readonly workspace: number;
  readonly runtime: number;
  /** All of it. */
  readonly peak: number;
}

/** The peak memory of one step of training, nothing else in the process. */
export function trainingMemory(shape: TrainedShape, microBatch: MicroBatchShape): TrainingMemory {
  const { model, parameters, trained } = shape;
  const { lanes = 1 } = microBatch;
  const weights = floatBytes * parameters;
  const gradients = lanes * floatBytes * trained;
  const moments = shape.momentsOnDisk ? 0 : 2 * floatBytes * trained;
  const activations = lanes * floatBytes * activationFloats(model, microBatch);
  const perLane = layerFloats(model, microBatch) + headFloats(model, microBatch);
  const workspace = Math.round(lanes * floatBytes * perLane);
  const runtime = runtimeBytes;
  const peak = weights + gradients + moments + activations + workspace + runtime;
  return { weights, gradients, moments, activations, workspace, runtime, peak };
}

/** Below this, training keeps its sessions and arrays while the model is sampled; to make them anew takes some hundredths of a second. */
const keptWhileSampling = 512e6;

/** Bytes of `memory` that training gives back before the model is sampled; it has the sampler give back its own before it goes on. */
export function bytesGivenBack({ activations, workspace }: TrainingMemory): number {
  const bytes = activations + workspace;
  return bytes > keptWhileSampling ? bytes : 0;
}

/** Numbers that a layer keeps for each token: its queries, keys, values, middle, gate and up. */
function keptFloats(model: ModelOptions): number {
  const { width, heads, keyValueHeads, feedForward } = model;
  return (heads + 2 * keyValueHeads) * headSize(model) + width + 2 * feedForward;
}

/** Numbers that a layer keeps of attention for each token: its weights and its result, where they are kept. */
function attentionFloats(model: ModelOptions, { tokens, time, keepsAttention }: MicroBatchShape): number {
  if (!keepsAttention) return 0;
  const longest = Math.min(time, tokens);
  // Sequences a little shorter than `time` may not be cut into blocks.
  const keys = Math.max(keysOfQuery(longest), Math.min(longest, leastTimeOfBlocks - 1));
  return model.heads * (keys + headSize(model));
}

/** As `keptFloats` in one run of all layers: all that the way back needs, attention weights too. */
function wholeLayerFloats(model: ModelOptions, { tokens, time }: MicroBatchShape): number {
  const { width, heads, keyValueHeads, feedForward } = model;
  const attention = heads * Math.min(time, tokens) + (2 * heads + 2 * keyValueHeads) * headSize(model);
  return attention + 4 * width + 5 * feedForward;
}

function activationFloats(model: ModelOptions, microBatch: MicroBatchShape): number {
  const { layers, width } = model;
  const { tokens, keptLayers, inOneRun } = microBatch;
  // Hidden states and their gradient, on both sides of the run.
  if (inOneRun) return tokens * (layers * wholeLayerFloats(model, microBatch) + 4 * width);
  // Between layers; two gradients; the selected rows with their gradient; and one of a layer that runs again.
  const hidden = (layers + 1 + 2 + 2 + 1) * width;
  const kept = Math.min(layers, keptLayers < layers ? keptLayers + 1 : layers);
  return tokens * (hidden + kept * (keptFloats(model) + attentionFloats(model, microBatch)));
}

/** Matrices of attention scores, and vectors of a token, that the sessions of a layer hold at their widest places; beside what one run of all layers keeps. */
const scoreMatrices = { layered: 6.2, whole: 3 };
const widthVectors = 7;
const feedForwardVectors = 7;

function layerFloats(model: ModelOptions, { tokens, time, inOneRun }: MicroBatchShape): number {
  const matrices = inOneRun ? scoreMatrices.whole : scoreMatrices.layered;
  const vectors = widthVectors * model.width + feedForwardVectors * model.feedForward;
  return tokens * (matrices * model.heads * Math.min(time, tokens) + vectors);
}

/** As `rowsOfPiece`. */
const pieceFloats = 48 * 2 ** 20;

/** Probabilities of a piece, which become their gradient in place. */
function headFloats({ vocabularySize }: ModelOptions, { tokens }: MicroBatchShape): number {
  return Math.min(tokens * vocabularySize, Math.max(16 * vocabularySize, pieceFloats));
}
