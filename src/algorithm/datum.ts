/**
 * A datum: one sequence as the engine trains on it, already shifted. With `ValueDatum`, the same for a critic, it is
 * the only thing that crosses from the algorithms to an engine, embedded or remote.
 */

/** One sequence to train on. All arrays have length T; entry t belongs to the prediction of `targets[t]` from `inputs[0..t]`. */
export interface Datum {
  readonly inputs: Int32Array;
  readonly targets: Int32Array;
  /** Weight of each prediction in the loss; exactly 0 where it must teach nothing. The loss is a plain sum: whoever builds the batch divides. */
  readonly weights: Float32Array;
  /** `importanceSampling` and `ppo`: log-probability of the target when it was sampled. */
  readonly logprobs?: Float32Array;
  /** `importanceSampling` and `ppo`: advantage of the target. */
  readonly advantages?: Float32Array;
  /** With a KL term: log-probability under the frozen reference policy. */
  readonly referenceLogprobs?: Float32Array;
}

/** One sequence for a critic to train on. All arrays have length T; entry t belongs to the value of `inputs[0..t]`. */
export interface ValueDatum {
  readonly inputs: Int32Array;
  /** As in `Datum`. */
  readonly weights: Float32Array;
  /** What the critic said before the first update of the step. */
  readonly values: Float32Array;
  /** What it should have said. */
  readonly returns: Float32Array;
}
