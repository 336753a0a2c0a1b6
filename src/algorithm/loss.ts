/**
 * The losses an engine can differentiate. With r = exp(logprob - sampled logprob), A the advantage and w the
 * weight of a token, each is a plain sum over all tokens. `token-loss.ts` holds the same as plain functions.
 */

/**
 * Exponents (of r and of k3) are held within +-`maxLogRatio`, so that a token whose probability moved by a factor
 * beyond e^20 gives a finite loss and no gradient instead of infinity; verl took the same cure for its NaN losses.
 */
export const maxLogRatio = 20;

export type Loss =
  /** -w * logprob */
  | { readonly type: "crossEntropy" }
  /** -w * r * A */
  | { readonly type: "importanceSampling" }
  /** -w * (min(r A, clip(r, 1 - clipLow, 1 + clipHigh) A) - coefficient * kl) with kl against `referenceLogprobs` */
  | { readonly type: "ppo"; readonly clipLow: number; readonly clipHigh: number; readonly kl?: KlTerm }
  /** -w * clip(r, low, high) * A * logprob, where the ratio is a constant (MiniMax 2025, "MiniMax-M1", eq. 4) */
  | { readonly type: "cispo"; readonly low: number; readonly high: number }
  /** -w * (A * logprob - beta/2 * (logprob - sampled logprob)^2) (Richemond et al. 2024, "Offline regularised RL", DRO) */
  | { readonly type: "dro"; readonly beta: number };

/** k1: logprob - reference; k3: exp(reference - logprob) - (reference - logprob) - 1 (Schulman, "Approximating KL divergence", 2020). */
export interface KlTerm {
  readonly estimator: "k1" | "k3";
  readonly coefficient: number;
}

/**
 * The loss of a critic, w / 2 * max((v - R)^2, (clip(v, V - clip, V + clip) - R)^2), with v its value, V what it was
 * before the first update and R the return: no step takes the value further than `clip` towards the return. A plain
 * sum as well, as in verl, on which Search-R1 builds.
 */
export interface ValueLoss {
  readonly type: "value";
  readonly clip: number;
}
