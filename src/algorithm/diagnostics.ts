/**
 * What a policy update looks like from outside: how far the policy has moved from the one that sampled, and how
 * sure it is. Means are over trained tokens (weight other than 0), each counted once, whatever its weight.
 */
import type { Datum } from "./datum.ts";
import { clampLogRatio, type KlEstimator, klEstimate } from "./kl.ts";
import type { Loss } from "./loss.ts";

export interface PolicyDiagnostics {
  /** Trained tokens that were looked at. */
  readonly tokens: number;
  /** Share of tokens whose gradient the clip took away, 0 to 1; 0 for losses without a clip. */
  readonly clipFraction: number;
  /** Mean and largest probability ratio, now over sampled; 1 and 1 before the first update. */
  readonly ratioMean: number;
  readonly ratioMax: number;
  /** Estimate (k3) of KL(sampling policy || policy now), nats per token; never negative. */
  readonly klDivergence: number;
  /** Mean of -logprob of the sampled tokens under the policy now, nats; an estimate of its entropy while it is near the sampling policy. */
  readonly entropy: number;
}

/**
 * Compares the `logprobs` an engine reports, one array (T) for each datum, with those at sampling. Without any
 * trained token all means are those of an unmoved policy.
 */
export function policyDiagnostics(
  data: readonly Datum[],
  logprobs: readonly ArrayLike<number>[],
  loss: Loss,
): PolicyDiagnostics {
  let tokens = 0;
  let clipped = 0;
  let ratioSum = 0;
  let ratioMax = 0;
  let klSum = 0;
  let surprise = 0;
  for (const [i, datum] of data.entries()) {
    for (let t = 0; t < datum.targets.length; t++) {
      if (datum.weights[t] === 0) continue;
      const now = logprobs[i]?.[t] as number;
      const sampled = datum.logprobs?.[t] ?? now;
      const ratio = Math.exp(clampLogRatio(now - sampled));
      tokens++;
      ratioSum += ratio;
      ratioMax = Math.max(ratioMax, ratio);
      klSum += klEstimate("k3", sampled, now);
      surprise -= now;
      if (isClipped(loss, ratio, datum.advantages?.[t] ?? 0)) clipped++;
    }
  }
  if (tokens === 0)
    return { tokens, clipFraction: 0, ratioMean: 1, ratioMax: 1, klDivergence: 0, entropy: 0 };
  return {
    tokens,
    clipFraction: clipped / tokens,
    ratioMean: ratioSum / tokens,
    ratioMax,
    klDivergence: klSum / tokens,
    entropy: surprise / tokens,
  };
}

/** True where the clip is active: the ratio has left the range in the direction the advantage pushes it. */
function isClipped(loss: Loss, ratio: number, advantage: number): boolean {
  if (loss.type !== "ppo") return false;
  return advantage > 0 ? ratio > 1 + loss.clipHigh : advantage < 0 && ratio < 1 - loss.clipLow;
}

/** Largest difference between `logprobs` and those at sampling over trained tokens: before any update, a test that sampler and trainer agree. */
export function maxLogprobDifference(data: readonly Datum[], logprobs: readonly ArrayLike<number>[]): number {
  let largest = 0;
  for (const [i, { weights, logprobs: sampled }] of data.entries())
    for (let t = 0; t < weights.length; t++)
      if (weights[t] !== 0 && sampled)
        largest = Math.max(largest, Math.abs((logprobs[i]?.[t] as number) - (sampled[t] as number)));
  return largest;
}

/** Mean divergence from the frozen reference over trained tokens, in nats; 0 where data carry no `referenceLogprobs`. */
export function referenceKlDivergence(
  data: readonly Datum[],
  logprobs: readonly ArrayLike<number>[],
  estimator: KlEstimator,
): number {
  let sum = 0;
  let tokens = 0;
  for (const [i, { weights, referenceLogprobs }] of data.entries())
    for (let t = 0; t < weights.length; t++) {
      if (weights[t] === 0 || !referenceLogprobs) continue;
      sum += klEstimate(estimator, logprobs[i]?.[t] as number, referenceLogprobs[t] as number);
      tokens++;
    }
  return tokens === 0 ? 0 : sum / tokens;
}
