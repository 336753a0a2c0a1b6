/** Draws the next token from log-probabilities: greedy, or by temperature, top-k and nucleus (Holtzman et al., 2020). */
import type { SamplingOptions } from "../rollout/policy.ts";
import type { Random } from "../shared/random.ts";

type Filter = Pick<SamplingOptions, "temperature" | "topP" | "topK">;

/** The token drawn from one row of natural log-probabilities (V); at temperature 0 the most likely, ties to the lower id. */
export function sampleToken(logprobs: Float32Array, options: Filter, chance: Random): number {
  if (options.temperature === 0) return mostLikely(logprobs);
  if (options.topK === 0 && options.topP === 1) return sampleAll(logprobs, options.temperature, chance);
  return sampleFiltered(logprobs, options, chance);
}

export function mostLikely(logprobs: Float32Array): number {
  let best = 0;
  for (let token = 1; token < logprobs.length; token++) {
    if ((logprobs[token] as number) > (logprobs[best] as number)) best = token;
  }
  return best;
}

/**
 * Inverse transform over all tokens. At temperature 1 the log-probabilities are used as they are, without a pass
 * to sum them; a row whose mass is below 1 (ids without a text are left out) is drawn from again within its mass.
 */
function sampleAll(logprobs: Float32Array, temperature: number, chance: Random): number {
  if (temperature !== 1) {
    const peak = logprobs[mostLikely(logprobs)] as number;
    const total = totalWeight(logprobs, temperature, peak);
    return walk(logprobs, { temperature, peak }, chance.next() * total).token;
  }
  const asIs = { temperature, peak: 0 };
  const point = chance.next();
  const { token, excess } = walk(logprobs, asIs, point);
  return excess <= 0 ? token : walk(logprobs, asIs, chance.next() * (point - excess)).token;
}

/** The token at `point` when tokens lie end to end, each as long as its weight; `excess` is what lies beyond the last. */
function walk(
  logprobs: Float32Array,
  scale: { readonly temperature: number; readonly peak: number },
  point: number,
): { token: number; excess: number } {
  let excess = point;
  let lastPossible = 0;
  for (let token = 0; token < logprobs.length; token++) {
    const weight = Math.exp(((logprobs[token] as number) - scale.peak) / scale.temperature);
    if (weight === 0) continue;
    excess -= weight;
    lastPossible = token;
    if (excess <= 0) break;
  }
  return { token: lastPossible, excess };
}

function totalWeight(logprobs: Float32Array, temperature: number, peak: number): number {
  let total = 0;
  for (let token = 0; token < logprobs.length; token++) {
    total += Math.exp(((logprobs[token] as number) - peak) / temperature);
  }
  return total;
}

/** Keeps the `topK` most likely tokens, then the fewest whose mass reaches `topP` (always one), and draws among them. */
function sampleFiltered(logprobs: Float32Array, options: Filter, chance: Random): number {
  const { temperature, topK, topP } = options;
  const peak = logprobs[mostLikely(logprobs)] as number;
  const order = Array.from(logprobs.keys()).sort(
    (a, b) => (logprobs[b] as number) - (logprobs[a] as number) || a - b,
  );
  const kept = topK === 0 ? order : order.slice(0, topK);
  const weights = kept.map((token) => Math.exp(((logprobs[token] as number) - peak) / temperature));
  const total = weights.reduce((a, b) => a + b, 0);
  let mass = 0;
  let count = 0;
  while (count < kept.length && (count === 0 || mass < topP * total)) mass += weights[count++] as number;
  let rest = chance.next() * mass;
  for (let i = 0; i < count; i++) {
    rest -= weights[i] as number;
    if (rest <= 0) return kept[i] as number;
  }
  return kept[count - 1] as number;
}
