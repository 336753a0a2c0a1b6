/**
 * Draws the next token from log-probabilities: greedy, or by temperature, top-k and nucleus (Holtzman et al., 2020).
 * It runs between two calls of the model for each of up to 128 rows of a vocabulary, while the model's threads wait:
 * no row is sorted as a whole, and weights come from `fast-exp.ts`.
 */
import type { SamplingOptions } from "../rollout/policy.ts";
import type { Random } from "../shared/random.ts";
import { blockTokens } from "./block-masses.ts";
import { exponential } from "./fast-exp.ts";
import { mostLikely } from "./most-likely.ts";

type Filter = Pick<SamplingOptions, "temperature" | "topP" | "topK">;

/**
 * The token drawn from one row of natural log-probabilities (V); at temperature 0 the most likely, ties to the lower id.
 * `masses` are those of the row's blocks at this temperature (`block-masses.ts`), where they are known.
 */
export function sampleToken(
  logprobs: Float32Array,
  options: Filter,
  chance: Random,
  masses?: Float32Array | undefined,
): number {
  if (options.temperature === 0) return mostLikely(logprobs);
  if (!isUnfiltered(options)) return sampleFiltered(logprobs, options, chance);
  const total = masses?.reduce((sum, mass) => sum + mass, 0) ?? 0;
  // Log-probabilities that are no numbers, or a temperature at which all vanish, have no blocks to walk along.
  if (masses && total > 0 && total < Number.POSITIVE_INFINITY) {
    const { temperature } = options;
    return sampleBlocks(logprobs, masses, { temperature, excess: chance.next() * total });
  }
  return sampleAll(logprobs, options.temperature, chance);
}

/** Whether tokens are drawn among all, so that the masses of blocks help. */
export function isUnfiltered({ temperature, topK, topP }: Filter): boolean {
  return temperature > 0 && topK === 0 && topP === 1;
}

/** Walks along blocks as far as `excess` of their masses, then through the block in which that lies. */
function sampleBlocks(
  logprobs: Float32Array,
  masses: Float32Array,
  { temperature, excess: whole }: { readonly temperature: number; readonly excess: number },
): number {
  let excess = whole;
  let block = 0;
  let lastPossible = 0;
  for (; block < masses.length; block++) {
    const mass = masses[block] as number;
    if (mass === 0) continue;
    lastPossible = block;
    if (excess <= mass) break;
    excess -= mass;
  }
  const first = blockTokens * lastPossible;
  const tokens = logprobs.subarray(first, first + blockTokens);
  const scale = { temperature, peak: tokens[mostLikely(tokens)] as number };
  const share = Math.min(1, excess / (masses[lastPossible] as number));
  return first + walk(tokens, scale, share * totalWeight(tokens, scale)).token;
}

/** How log-probabilities become weights: exp((logprob - peak) / temperature). */
interface Scale {
  readonly temperature: number;
  readonly peak: number;
}

/**
 * Inverse transform over all tokens. At temperature 1 the log-probabilities are used as they are, without a pass
 * to sum them; a row whose mass is below 1 (ids without a text are left out) is drawn from again within its mass.
 */
function sampleAll(logprobs: Float32Array, temperature: number, chance: Random): number {
  if (temperature !== 1) {
    const scale = { temperature, peak: logprobs[mostLikely(logprobs)] as number };
    return walk(logprobs, scale, chance.next() * totalWeight(logprobs, scale)).token;
  }
  const asIs = { temperature, peak: 0 };
  const point = chance.next();
  const { token, excess } = walk(logprobs, asIs, point);
  return excess <= 0 ? token : walk(logprobs, asIs, chance.next() * (point - excess)).token;
}

/** The token at `point` when tokens lie end to end, each as long as its weight; `excess` is what lies beyond the last. */
function walk(logprobs: Float32Array, scale: Scale, point: number): { token: number; excess: number } {
  const { peak } = scale;
  const factor = 1 / scale.temperature;
  let excess = point;
  let lastPossible = 0;
  for (let token = 0; token < logprobs.length; token++) {
    const weight = exponential(((logprobs[token] as number) - peak) * factor);
    if (weight === 0) continue;
    excess -= weight;
    lastPossible = token;
    if (excess <= 0) break;
  }
  return { token: lastPossible, excess };
}

function totalWeight(logprobs: Float32Array, { temperature, peak }: Scale): number {
  const factor = 1 / temperature;
  let total = 0;
  for (let token = 0; token < logprobs.length; token++) {
    total += exponential(((logprobs[token] as number) - peak) * factor);
  }
  return total;
}

/** Keeps the `topK` most likely tokens, then the fewest whose mass reaches `topP` (always one), and draws among them. */
function sampleFiltered(logprobs: Float32Array, options: Filter, chance: Random): number {
  const { topP, topK } = options;
  const scale = { temperature: options.temperature, peak: logprobs[mostLikely(logprobs)] as number };
  const weightOf = (token: number): number =>
    exponential(((logprobs[token] as number) - scale.peak) / scale.temperature);
  const total = topK === 0 ? totalWeight(logprobs, scale) : undefined;
  const order = likeliest(logprobs, scale, (tokens) => {
    if (total === undefined) return tokens.length >= topK;
    return tokens.reduce((sum, token) => sum + weightOf(token), 0) >= topP * total;
  });
  const kept = topK === 0 ? order : order.slice(0, topK);
  const weights = kept.map(weightOf);
  const reach = topP * (total ?? weights.reduce((a, b) => a + b, 0));
  let mass = 0;
  let count = 0;
  while (count < kept.length && (count === 0 || mass < reach)) mass += weights[count++] as number;
  let rest = chance.next() * mass;
  for (let i = 0; i < count; i++) {
    rest -= weights[i] as number;
    if (rest <= 0) return kept[i] as number;
  }
  return kept[count - 1] as number;
}

/** The first distance from the peak within which tokens are looked for, in units of the temperature. */
const firstReach = 4;

/** The most likely tokens in order, ties by id; at least as many as are `enough`, or all. */
function likeliest(
  logprobs: Float32Array,
  { temperature, peak }: Scale,
  isEnough: (tokens: readonly number[]) => boolean,
): number[] {
  let tokens: number[] = [];
  for (let reach = firstReach; tokens.length < logprobs.length; reach *= 2) {
    tokens = tokensAbove(logprobs, reach > 1000 ? Number.NEGATIVE_INFINITY : peak - reach * temperature);
    if (isEnough(tokens)) break;
  }
  return tokens.sort((a, b) => (logprobs[b] as number) - (logprobs[a] as number) || a - b);
}

function tokensAbove(logprobs: Float32Array, least: number): number[] {
  const tokens: number[] = [];
  for (let token = 0; token < logprobs.length; token++) {
    if ((logprobs[token] as number) >= least) tokens.push(token);
  }
  return tokens;
}
