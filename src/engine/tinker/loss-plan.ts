/**
 * Our losses in what a server can compute. The contract is a plain sum of weighted token losses. A server that sums gets it by
 * its own losses, the weight of a token multiplied into its advantage. Whatever a server has no loss for (a KL term, cross
 * entropy where the server divides by its weights) is carried: the derivative g of the loss with respect to every log-probability
 * is computed here from a forward pass, and a loss whose derivative is known sends it back: cross entropy with the weights
 * -g, or importance sampling at a ratio of 1 with the advantages -g (the `forward_backward_custom` of the official client).
 *
 * A server with `sequenceMean` divides the loss of a sequence by the sum of its weights, and the gradient by the number of
 * sequences since the last step. With weights of 0 and 1 both are counts that are known here, so that advantages multiplied
 * by them give the plain sum, as long as one step has one batch.
 */
import type { Datum } from "../../algorithm/datum.ts";
import type { Loss } from "../../algorithm/loss.ts";
import { datumLoss } from "../../algorithm/token-loss.ts";
import { assert } from "../../errors.ts";
import type { Profile } from "./profiles.ts";
import type { LossName } from "./wire.ts";
import { type Columns, type WireBatch, wireDatum } from "./wire-data.ts";

const names = {
  crossEntropy: "cross_entropy",
  importanceSampling: "importance_sampling",
  ppo: "ppo",
  cispo: "cispo",
  // Its square has no advantage that a weight could be multiplied into.
  dro: undefined,
} as const satisfies Readonly<Record<Loss["type"], LossName | undefined>>;

/** The server's name of a loss, where it has it as we mean it. */
function directLoss(loss: Loss, { losses }: Profile): LossName | undefined {
  const name = names[loss.type];
  const hasTerm = loss.type === "ppo" && loss.kl !== undefined;
  return name !== undefined && !hasTerm && losses.includes(name) ? name : undefined;
}

/** Whether the server's own loss gives our gradient for these data; else it is carried. */
export function isDirect(loss: Loss, batch: readonly Datum[], profile: Profile): boolean {
  if (directLoss(loss, profile) === undefined) return false;
  // A clipped objective times a negative weight is not the clipped objective of the product.
  return loss.type !== "ppo" || batch.every(({ weights }) => weights.every((weight) => weight >= 0));
}

/** A batch whose gradient under the server's own loss is that of `loss`. */
export function directBatch(loss: Loss, batch: readonly Datum[], profile: Profile): WireBatch {
  const loss_fn = directLoss(loss, profile);
  assert(loss_fn !== undefined, `${profile.name} has a loss for ${loss.type}`);
  if (loss_fn === "cross_entropy")
    return { loss_fn, data: batch.map((datum) => wireDatum(datum, { weights: datum.weights })) };
  const data = batch.map((datum) => {
    const { weights, logprobs, advantages } = datum;
    assert(logprobs && advantages, `${loss.type} needs the sampled logprobs and the advantages`);
    const scaled = Array.from(weights, (weight, t) => weight * (advantages[t] as number));
    const sampled = Array.from(weights, (weight, t) => (weight === 0 ? 0 : (logprobs[t] as number)));
    return wireDatum(datum, policyColumns(datum, { scaled, sampled, count: batch.length }, profile));
  });
  const bounds = ratioBounds(loss);
  if (bounds === undefined) return { loss_fn, data };
  const [clip_low_threshold, clip_high_threshold] = bounds;
  return { loss_fn, loss_fn_config: { clip_low_threshold, clip_high_threshold }, data };
}

/** Bounds of the ratio, which servers have defaults of their own for. */
function ratioBounds(loss: Loss): readonly [number, number] | undefined {
  if (loss.type === "ppo") return [1 - loss.clipLow, 1 + loss.clipHigh];
  return loss.type === "cispo" ? [loss.low, loss.high] : undefined;
}

/** A batch whose gradient is that of `loss` at the log-probabilities `current`, which a forward pass just gave. */
export function carriedBatch(
  loss: Loss,
  { batch, current }: { readonly batch: readonly Datum[]; readonly current: readonly Float32Array[] },
  profile: Profile,
): WireBatch {
  const loss_fn = profile.carrier;
  const data = batch.map((datum, index) => {
    const row = current[index] as Float32Array;
    const scaled = Array.from(datumLoss(loss, datum, row).derivatives, (derivative) => 0 - derivative);
    if (loss_fn === "cross_entropy") return wireDatum(datum, { weights: scaled });
    const sampled = Array.from(datum.weights, (weight, t) => (weight === 0 ? 0 : (row[t] as number)));
    return wireDatum(datum, policyColumns(datum, { scaled, sampled, count: batch.length }, profile));
  });
  return { loss_fn, data };
}

interface PolicyParts {
  /** Advantages times weights. */
  readonly scaled: readonly number[];
  /** Log-probabilities of the denominator of the ratio. */
  readonly sampled: readonly number[];
  /** Sequences of this step. */
  readonly count: number;
}

function policyColumns(
  { weights }: Datum,
  { scaled, sampled, count }: PolicyParts,
  { reduction, sendsWeights }: Profile,
): Columns {
  const mask = Array.from(weights, (weight) => (weight === 0 ? 0 : 1));
  const trained = mask.reduce<number>((sum, one) => sum + one, 0);
  const factor = reduction === "sum" ? 1 : trained * count;
  return {
    logprobs: sampled,
    advantages: scaled.map((value) => value * factor),
    ...(sendsWeights && { weights: mask }),
  };
}
