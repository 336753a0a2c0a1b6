/**
 * Are two results on the same questions different? The mean difference with its bootstrap interval, and a two-sided
 * randomisation test (Fisher 1935): if nothing differs, each question's difference could as well have the other
 * sign. All sign patterns are tried when there are few; else random ones, with p = (1 + extreme) / (1 + tried),
 * which is never 0 (Phipson and Smyth 2010). Pairs without a difference change nothing and are not flipped.
 */
import { assert } from "../errors.ts";
import { type Random, random } from "../shared/random.ts";
import { type BootstrapOptions, bootstrapMean, type Estimate } from "./bootstrap.ts";

export type DifferenceVerdict = "better" | "worse" | "not distinguishable";

export interface PairedDifference extends Estimate {
  /** Two-sided p of the randomisation test. */
  readonly p: number;
  /** Whether the second is better than the first, at a p below 0.05. */
  readonly verdict: DifferenceVerdict;
}

export interface PairedTestOptions extends BootstrapOptions {
  /** Which direction is good; default `higher`. */
  readonly better?: "higher" | "lower";
}

const significance = 0.05;
/** At most 2^14 sign patterns are enumerated. */
const exactPairs = 14;
const randomPatterns = 10_000;

/** Compares `after` with `before`, aligned by question: the mean of after - before. Undefined for no pairs. */
export function pairedTest(
  before: readonly number[],
  after: readonly number[],
  options: PairedTestOptions,
): PairedDifference | undefined {
  assert(before.length === after.length, `${before.length} values are paired with ${after.length}`);
  const differences = before.map((value, i) => (after[i] as number) - value);
  const estimate = bootstrapMean(differences, options);
  if (!estimate) return undefined;
  const p = randomizationP(differences, random(options.seed, "sign-flip"));
  return { ...estimate, p, verdict: verdictOf(estimate.mean, p, options.better ?? "higher") };
}

/** Two-sided p of the sign-flip test that the mean of `differences` is 0. */
export function randomizationP(differences: readonly number[], chance: Random): number {
  const moved = Float64Array.from(differences.filter((difference) => difference !== 0));
  const observed = Math.abs(moved.reduce((sum, value) => sum + value, 0));
  // Sums of equal patterns differ by rounding; what is as large up to rounding counts as large.
  const threshold = observed - 1e-9 * (1 + observed);
  if (moved.length <= exactPairs) return exactP(moved, threshold);
  const nextBit = coin(chance);
  let extreme = 0;
  for (let i = 0; i < randomPatterns; i++) if (Math.abs(flippedSum(moved, nextBit)) >= threshold) extreme++;
  return (1 + extreme) / (1 + randomPatterns);
}

/** Fair coin tosses, 30 from each draw. */
function coin(chance: Random): () => boolean {
  let bits = 0;
  let left = 0;
  return () => {
    if (left === 0) {
      bits = chance.below(2 ** 30);
      left = 30;
    }
    left--;
    return ((bits >> left) & 1) === 1;
  };
}

function exactP(moved: Float64Array, threshold: number): number {
  const patterns = 2 ** moved.length;
  let extreme = 0;
  for (let pattern = 0; pattern < patterns; pattern++)
    if (Math.abs(flippedSum(moved, (i) => ((pattern >> i) & 1) === 1)) >= threshold) extreme++;
  return extreme / patterns;
}

function flippedSum(values: Float64Array, isFlipped: (index: number) => boolean): number {
  let sum = 0;
  for (let i = 0; i < values.length; i++)
    sum += isFlipped(i) ? -(values[i] as number) : (values[i] as number);
  return sum;
}

function verdictOf(difference: number, p: number, better: "higher" | "lower"): DifferenceVerdict {
  if (p >= significance) return "not distinguishable";
  return difference > 0 === (better === "higher") ? "better" : "worse";
}

/** A sentence such as "em: after is better than before by +0.350 (95 % interval 0.290 to 0.410, p = 0.0001, n = 200)". */
export function describeDifference(
  difference: PairedDifference,
  names: {
    readonly metric: string;
    readonly before: string;
    readonly after: string;
    /** More of it is neither good nor bad, such as searches. */
    readonly isNeutral?: boolean;
  },
): string {
  const { mean, ci, p, n, verdict } = difference;
  const sign = mean > 0 ? "+" : "";
  const numbers = `${sign}${mean.toFixed(3)} (95 % interval ${ci[0].toFixed(3)} to ${ci[1].toFixed(3)}, p = ${p.toPrecision(2)}, n = ${n})`;
  const { metric, before, after, isNeutral = false } = names;
  const comparative = isNeutral ? (mean > 0 ? "higher" : "lower") : verdict;
  return verdict === "not distinguishable"
    ? `${metric}: ${after} and ${before} are not distinguishable, ${numbers}`
    : `${metric}: ${after} is ${comparative} than ${before} by ${numbers}`;
}
