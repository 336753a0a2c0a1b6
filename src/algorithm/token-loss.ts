/**
 * The losses of `loss.ts` for one token and one datum, with their derivatives, written for reading: the oracle
 * that the embedded engine is tested against, never its implementation, and what an engine elsewhere is told by.
 * Clipped objective: Schulman et al. 2017, eq. 7, with a clip range that may be wider above than below (DAPO).
 */
import { assert } from "../errors.ts";
import type { Datum, ValueDatum } from "./datum.ts";
import { clampLogRatio, klDerivative, klEstimate } from "./kl.ts";
import { type Loss, maxLogRatio, type ValueLoss } from "./loss.ts";

/** What one target brings: natural log-probabilities, and the datum's weight and advantage. */
export interface TokenInput {
  readonly weight: number;
  /** Under the current weights. */
  readonly logprob: number;
  /** When it was sampled; not read by `crossEntropy`. */
  readonly sampledLogprob: number;
  readonly advantage: number;
  /** Under the frozen reference; read with a KL term only. */
  readonly referenceLogprob: number;
}

export interface TokenLoss {
  readonly loss: number;
  /** Derivative of `loss` with respect to the current `logprob`. */
  readonly derivative: number;
}

/** The loss of one token and its derivative. At the edge of the clip range the derivative is that of the inside. */
export function tokenLoss(loss: Loss, token: TokenInput): TokenLoss {
  const { weight, logprob, sampledLogprob, advantage, referenceLogprob } = token;
  if (loss.type === "crossEntropy") return { loss: -weight * logprob, derivative: -weight };
  const logRatio = logprob - sampledLogprob;
  const ratio = Math.exp(clampLogRatio(logRatio));
  if (loss.type === "cispo") {
    const slope = Math.max(loss.low, Math.min(loss.high, ratio)) * advantage;
    return { loss: -weight * slope * logprob, derivative: -weight * slope };
  }
  if (loss.type === "dro") {
    const gain = advantage * logprob - (loss.beta / 2) * logRatio ** 2;
    return { loss: -weight * gain, derivative: -weight * (advantage - loss.beta * logRatio) };
  }
  const gain = ratio * advantage;
  const gainDerivative = Math.abs(logRatio) > maxLogRatio ? 0 : gain;
  if (loss.type === "importanceSampling")
    return { loss: -weight * gain, derivative: -weight * gainDerivative };
  const clippedGain = Math.max(1 - loss.clipLow, Math.min(1 + loss.clipHigh, ratio)) * advantage;
  const objective = Math.min(gain, clippedGain);
  const objectiveDerivative = gain <= clippedGain ? gainDerivative : 0;
  if (!loss.kl) return { loss: -weight * objective, derivative: -weight * objectiveDerivative };
  const { estimator, coefficient } = loss.kl;
  const kl = coefficient * klEstimate(estimator, logprob, referenceLogprob);
  const klSlope = coefficient * klDerivative(estimator, logprob, referenceLogprob);
  return { loss: -weight * (objective - kl), derivative: -weight * (objectiveDerivative - klSlope) };
}

/**
 * The loss of a datum under the current `logprobs` (T), summed over its targets, and the derivative with respect
 * to each of them (T). Targets of weight 0 are skipped: their loss and derivative are exactly 0.
 */
export function datumLoss(
  loss: Loss,
  datum: Datum,
  logprobs: ArrayLike<number>,
): { readonly loss: number; readonly derivatives: Float64Array } {
  assertFields(loss, datum);
  const derivatives = new Float64Array(datum.targets.length);
  let sum = 0;
  for (let t = 0; t < derivatives.length; t++) {
    const weight = datum.weights[t] as number;
    if (weight === 0) continue;
    const token = tokenLoss(loss, {
      weight,
      logprob: logprobs[t] as number,
      sampledLogprob: datum.logprobs?.[t] ?? 0,
      advantage: datum.advantages?.[t] ?? 0,
      referenceLogprob: datum.referenceLogprobs?.[t] ?? 0,
    });
    sum += token.loss;
    derivatives[t] = token.derivative;
  }
  return { loss: sum, derivatives };
}

/** What a critic's loss reads of one target. */
export interface ValueInput {
  readonly weight: number;
  /** Under the current weights. */
  readonly value: number;
  /** Before the first update of the step. */
  readonly oldValue: number;
  readonly target: number;
}

/** The loss of a value and its derivative with respect to it. At the edge of the range the derivative is that of the inside. */
export function valueTokenLoss({ clip }: ValueLoss, input: ValueInput): TokenLoss {
  const { weight, value, oldValue, target } = input;
  const clipped = Math.max(oldValue - clip, Math.min(oldValue + clip, value));
  const error = value - target;
  const clippedError = clipped - target;
  const isClipped = clippedError ** 2 > error ** 2;
  return {
    loss: (weight / 2) * (isClipped ? clippedError : error) ** 2,
    derivative: isClipped ? 0 : weight * error,
  };
}

/** `datumLoss` for a critic: `values` (T) are those under the current weights. */
export function valueDatumLoss(
  loss: ValueLoss,
  datum: ValueDatum,
  values: ArrayLike<number>,
): { readonly loss: number; readonly derivatives: Float64Array } {
  const derivatives = new Float64Array(datum.inputs.length);
  let sum = 0;
  for (const [t, weight] of datum.weights.entries()) {
    if (weight === 0) continue;
    const token = valueTokenLoss(loss, {
      weight,
      value: values[t] as number,
      oldValue: datum.values[t] as number,
      target: datum.returns[t] as number,
    });
    sum += token.loss;
    derivatives[t] = token.derivative;
  }
  return { loss: sum, derivatives };
}

function assertFields(loss: Loss, datum: Datum): void {
  if (loss.type === "crossEntropy") return;
  assert(datum.logprobs && datum.advantages, `${loss.type} needs the sampled logprobs and the advantages`);
  assert(loss.type !== "ppo" || !loss.kl || datum.referenceLogprobs, "a KL term needs referenceLogprobs");
}
