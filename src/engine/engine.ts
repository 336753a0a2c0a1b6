/**
 * The engine contract: a trainable model. It has the shape of the Tinker protocol, so that a laptop and a
 * cluster differ by one line of the recipe. Algorithms live above it; an engine that cannot honour a setting
 * throws `EngineError` at the start.
 */
import type { Datum, ValueDatum } from "../algorithm/datum.ts";
import type { Loss, ValueLoss } from "../algorithm/loss.ts";
import type { Policy } from "../rollout/policy.ts";
import type { Tokenizer } from "../tokenizer/tokenizer.ts";

export interface LossReport {
  /** The sum that was differentiated. */
  readonly loss: number;
  /** Current log-probability of every target that has a weight, 0 elsewhere; one array (T) for each datum, in order. */
  readonly logprobs: readonly Float32Array[];
  /** Tokens of the sequences that were computed, with the padding that was computed beside them; 0 where nothing has a weight. */
  readonly paddedTokens: number;
  /** Of them, tokens computed once with another sequence's, which begins alike; absent: none. */
  readonly sharedTokens?: number;
}

export interface AdamOptions {
  readonly learningRate: number;
  readonly beta1: number;
  readonly beta2: number;
  readonly epsilon: number;
  /** Decoupled: parameter -= learningRate * weightDecay * parameter; matrices only, not norms. */
  readonly weightDecay: number;
  /** The gradient is scaled down to this Euclidean norm; 0 = off. */
  readonly maxGradientNorm: number;
}

export interface StepReport {
  /** Euclidean norm of the accumulated gradient before clipping. */
  readonly gradientNorm: number;
}

export interface Engine {
  readonly tokenizer: Tokenizer;
  /** Most tokens of one sequence. */
  readonly contextLength: number;
  /** All parameters, and those that are trained: with adapters only theirs; undefined where an engine elsewhere does not tell. */
  readonly parameterCount: number | undefined;
  readonly trainableParameterCount: number | undefined;
  /** Samples with the current weights. */
  policy(): Policy;
  /** Log-probability of every target under the current weights, one array (T) for each datum; no gradient. */
  logprobs(batch: readonly Datum[]): Promise<Float32Array[]>;
  /** Adds the gradient of the loss to what has accumulated since the last step. */
  forwardBackward(batch: readonly Datum[], loss: Loss): Promise<LossReport>;
  /** One AdamW update with the accumulated gradient, which is then zero again. */
  step(options: AdamOptions): Promise<StepReport>;
  /** Forgets the optimiser's moments and step count, as at the switch between two stages. */
  resetOptimizer(): Promise<void>;
  /** Writes the trained weights, configuration, tokenizer and optimiser state into a new folder. */
  save(folder: string): Promise<void>;
  /** Reads what `save` wrote; shapes and frozen weights must be this engine's. Throws `CheckpointError`. */
  load(folder: string): Promise<void>;
  /** Gives up what the checkpoint in `folder`, which is about to be removed, keeps elsewhere; absent: it keeps all of it there. */
  discard?(folder: string): Promise<void>;
  /** A second copy with the weights of now that is never trained: the reference policy. */
  snapshot(): Promise<ReferencePolicy>;
  /** A fresh critic for this policy; absent where the engine has none. It is closed before the engine. */
  critic?(options: CriticOptions): Promise<Critic>;
  /** What the contract of a run says of an engine elsewhere: the server and what it was found to do; absent: it is in this process. */
  describe?(): Readonly<Record<string, unknown>>;
  /** What an engine elsewhere had to ask for again since it was opened; absent: it is in this process. */
  readonly counts?: EngineCounts;
  close(): Promise<void>;
}

/** What went wrong on the way to an engine elsewhere and was made up for. */
export interface EngineCounts {
  /** Calls that were sent again. */
  readonly retries: number;
  /** Polls that ended without a result: the long wait of a slow one, or an error that passed. */
  readonly polls: number;
  /** Samples that were asked for anew because their result was gone. */
  readonly resampled: number;
}

export interface ReferencePolicy {
  logprobs(batch: readonly Datum[]): Promise<Float32Array[]>;
}

export interface CriticOptions {
  /**
   * `own`: a copy of the engine's weights of now with a value head, which learns by itself; `shared`: a value head on the
   * engine's own weights, whose gradient is added to that of the engine's next step.
   */
  readonly trunk: "own" | "shared";
}

export interface ValueReport {
  /** The sum that was differentiated. */
  readonly loss: number;
  /** Value of every position that has a weight under the current weights, 0 elsewhere; one array (T) for each datum. */
  readonly values: readonly Float32Array[];
}

/** A model that says what a state of an episode is worth, in points of reward; a fresh one says 0 everywhere. PPO is its only user. */
export interface Critic {
  /** Value of `inputs[0..t]` for every t under the current weights, one array (T) for each datum; no gradient. */
  values(batch: readonly Pick<ValueDatum, "inputs">[]): Promise<Float32Array[]>;
  /**
   * Adds the gradient of the loss to what has accumulated since the last step. With `part: "head"` the weights below the
   * head get none.
   */
  forwardBackward(batch: readonly ValueDatum[], loss: ValueLoss, part?: "all" | "head"): Promise<ValueReport>;
  /** One AdamW update of the critic's own weights (with a shared trunk, the head's); their gradient is then zero again. */
  step(options: AdamOptions): Promise<StepReport>;
  /** Writes the critic's own weights and its optimiser's state into a new folder. */
  save(folder: string): Promise<void>;
  /** Reads what `save` wrote. Throws `CheckpointError` for a critic of another shape. */
  load(folder: string): Promise<void>;
  close(): Promise<void>;
}
