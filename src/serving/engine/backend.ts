/**
 * What a server of the Tinker protocol needs of the models behind it: one base, any number of models that are trained
 * from it, and sampling from weights that never change. `embedded-backend.ts` is one; tests and benchmarks have another
 * that computes nothing. Calls may overlap; an implementation orders what must not run at the same time.
 */
import type { Datum } from "../../algorithm/datum.ts";
import type { Loss } from "../../algorithm/loss.ts";
import type { AdamOptions, StepReport } from "../../engine/engine.ts";
import type { WritableTokenizer } from "../../tokenizer/tokenizer-file.ts";

export interface Backend {
  /** Ids of its tokens are below it. */
  readonly vocabularySize: number;
  /** Most tokens of one sequence. */
  readonly contextLength: number;
  /** For clients that read text; absent where there is none. */
  readonly tokenizer?: WritableTokenizer;
  /** Numbers that are trained with all weights, for the log. */
  readonly parameterCount: number;
  /** Samples from the base as it was opened. */
  readonly base: Sampler;
  /** A new model that computes what the base does. Throws `EngineError` for a shape that it cannot have. */
  create(shape: ModelShape): Promise<TrainedModel>;
  /** Weights that `save` of a model or a sampler wrote, to sample from. Throws `CheckpointError`, `FileError`. */
  open(folder: string, shape: ModelShape): Promise<Sampler>;
  close(): Promise<void>;
}

/** What is trained of a model. */
export interface ModelShape {
  /** Rank of its adapters; 0: all weights. */
  readonly rank: number;
  /** What the adapters add is multiplied by `alpha / rank`. */
  readonly alpha: number;
  readonly trainsAttention: boolean;
  readonly trainsFeedForward: boolean;
  /** Of fresh adapters. */
  readonly seed: number;
}

export interface TrainedModel {
  /** Log-probability of every target, one array (T) for each datum; no gradient. */
  logprobs(batch: readonly Datum[]): Promise<Float32Array[]>;
  /** Adds the gradient of the summed loss to what has accumulated; returns the sum and all log-probabilities. Throws `EngineError` where they are not finite: what has accumulated is forgotten then. */
  forwardBackward(batch: readonly Datum[], loss: Loss): Promise<LossSum>;
  /** One AdamW update. Throws `EngineError` where the gradient is not finite: it is forgotten then. */
  step(options: AdamOptions): Promise<StepReport>;
  /** The weights of now, which later steps do not change. */
  snapshot(): Promise<Sampler>;
  /** Writes weights and optimiser state into a new folder, adapters in the layout of PEFT. */
  save(folder: string): Promise<void>;
  /** Reads what `save` of a model wrote; without `optimizer` its moments start anew. Throws `CheckpointError`. */
  load(folder: string, options: { readonly optimizer: boolean }): Promise<void>;
  close(): Promise<void>;
}

export interface LossSum {
  readonly loss: number;
  /** One array (T) for each datum, of every target. */
  readonly logprobs: readonly Float32Array[];
}

/** Weights that never change. It is closed when nobody samples from it any more. */
export interface Sampler {
  sample(prompt: readonly number[], options: SampleOptions, signal?: AbortSignal): Promise<SampledSequence[]>;
  /** Log-probability of every token of a text but the first, which has none. */
  promptLogprobs(prompt: readonly number[]): Promise<Float32Array>;
  /** The `k` most likely tokens at every place but the first, most likely first. */
  topPromptLogprobs(prompt: readonly number[], k: number): Promise<readonly (readonly TokenLogprob[])[]>;
  /** Writes the weights into a new folder. */
  save(folder: string): Promise<void>;
  /** Gives back memory that the next call takes anew; nothing happens while it samples. */
  rest(): Promise<void>;
  close(): Promise<void>;
}

export type TokenLogprob = readonly [token: number, logprob: number];

export interface SampleOptions {
  /** One sequence for each, in order. */
  readonly seeds: readonly number[];
  readonly maxTokens: number;
  /** 0: the most likely token. */
  readonly temperature: number;
  readonly topP: number;
  /** 0: all. */
  readonly topK: number;
  /** A sequence ends with the first of these; it is part of it. */
  readonly stopTexts: readonly string[];
  readonly stopTokens: readonly number[];
}

export interface SampledSequence {
  readonly tokens: readonly number[];
  /** Natural, at temperature 1 over the whole vocabulary. */
  readonly logprobs: readonly number[];
  readonly reason: "stop" | "length";
}
