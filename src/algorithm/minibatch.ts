/**
 * Cuts the data of one step into minibatches, one optimiser update each, and divides the weights so that the
 * engine's plain sum becomes the mean that was asked for.
 */
import type { Random } from "../shared/random.ts";
import type { Datum } from "./datum.ts";

/** What is cut: data of a policy, or of a critic. */
interface Weighted {
  readonly weights: Float32Array;
}

/**
 * What the sum of token losses is divided by:
 * `token`: the weight of the whole minibatch (Search-R1's code; a long trajectory counts more than a short one);
 * `sequence`: the weight of its trajectory, then the number of trajectories (the GRPO paper's mean of means);
 * `constantTokens`: this many tokens for each trajectory, whatever its length (Dr. GRPO).
 */
export type LossNormalization = "token" | "sequence" | { readonly constantTokens: number };

export interface MinibatchOptions {
  /** Most trajectories in a minibatch. */
  readonly size: number;
  /** How often all data are gone through. */
  readonly epochs: number;
  readonly lossNormalization: LossNormalization;
  readonly random: Random;
}

export interface Minibatch<D extends Weighted = Datum> {
  /** With divided weights, ready for the engine. */
  readonly data: readonly D[];
  /** From 0. */
  readonly epoch: number;
  /** Targets with a weight other than 0. */
  readonly trainedTokens: number;
  /** All targets: what the engine has to compute. */
  readonly tokens: number;
}

/**
 * Shuffles `data` anew for each epoch and cuts it into as few minibatches of at most `size` as possible, whose
 * sizes differ by at most one. Data without any weight are left out: they teach nothing.
 */
export function minibatches<D extends Weighted>(
  data: readonly D[],
  options: MinibatchOptions,
): Minibatch<D>[] {
  const useful = data.filter((datum) => datum.weights.some((weight) => weight !== 0));
  const count = Math.ceil(useful.length / options.size);
  const result: Minibatch<D>[] = [];
  for (let epoch = 0; epoch < options.epochs; epoch++) {
    const shuffled = options.random.shuffle(useful);
    for (let i = 0; i < count; i++) {
      const start = Math.floor((i * shuffled.length) / count);
      const end = Math.floor(((i + 1) * shuffled.length) / count);
      const slice = shuffled.slice(start, end);
      result.push({ epoch, data: normalizeWeights(slice, options.lossNormalization), ...tokenCounts(slice) });
    }
  }
  return result;
}

/** `data` with their weights divided as `LossNormalization` says; zeros stay exactly zero. */
export function normalizeWeights<D extends Weighted>(
  data: readonly D[],
  normalization: LossNormalization,
): D[] {
  const totals = data.map(({ weights }) => weights.reduce((sum, weight) => sum + weight, 0));
  const total = totals.reduce((sum, value) => sum + value, 0);
  return data.map((datum, i) => {
    const divisor =
      normalization === "token"
        ? total
        : normalization === "sequence"
          ? data.length * (totals[i] as number)
          : data.length * normalization.constantTokens;
    return { ...datum, weights: datum.weights.map((weight) => (weight === 0 ? 0 : weight / divisor)) };
  });
}

function tokenCounts(data: readonly Weighted[]): { trainedTokens: number; tokens: number } {
  let trainedTokens = 0;
  let tokens = 0;
  for (const { weights } of data) {
    tokens += weights.length;
    for (const weight of weights) if (weight !== 0) trainedTokens++;
  }
  return { trainedTokens, tokens };
}
