/**
 * The contract of a critic: a model that says what a state of an episode is worth. An engine offers it beside its
 * policy (`Engine.critic`); PPO is its only user. Values are in points of reward.
 */
import type { ValueDatum } from "../algorithm/datum.ts";
import type { ValueLoss } from "../algorithm/loss.ts";
import type { AdamOptions, StepReport } from "./engine.ts";

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

/** A fresh critic says 0 everywhere. */
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
