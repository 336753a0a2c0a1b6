/**
 * Estimators of the Kullback-Leibler divergence of the policy p from a reference q, from tokens sampled by p
 * (Schulman, "Approximating KL divergence", 2020). With d = log q - log p of the sampled token:
 *   k1 = -d                   unbiased, may be negative
 *   k3 = exp(d) - d - 1       unbiased, never negative, less variance
 * As a term of the loss only k3 pulls towards the reference, with the expected gradient of KL(q || p): the slope
 * of k1 is 1 for every token, and the expected gradient of a sampled log-probability is zero. In k3 d is held
 * within +-maxLogRatio.
 */
import { type KlTerm, maxLogRatio } from "./loss.ts";

export type KlEstimator = KlTerm["estimator"];

/** The estimate of one token, in nats. */
export function klEstimate(estimator: KlEstimator, logprob: number, reference: number): number {
  if (estimator === "k1") return logprob - reference;
  const difference = clampLogRatio(reference - logprob);
  return Math.expm1(difference) - difference;
}

/** The derivative of `klEstimate` with respect to `logprob`. */
export function klDerivative(estimator: KlEstimator, logprob: number, reference: number): number {
  if (estimator === "k1") return 1;
  const difference = reference - logprob;
  return Math.abs(difference) > maxLogRatio ? 0 : -Math.expm1(difference);
}

export function clampLogRatio(difference: number): number {
  return Math.max(-maxLogRatio, Math.min(maxLogRatio, difference));
}
