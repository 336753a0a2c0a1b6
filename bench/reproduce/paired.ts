/**
 * Statistics of several seeds over the same questions: a metric as a matrix (seeds, questions), the difference of two
 * paired by seed and question, the ratio of two means, and the share of a gap that is closed, each with a two-level bootstrap
 * interval.
 */
import { bootstrapSeeds, type Estimate } from "../../src/evaluation/bootstrap.ts";
import { itemKey, type MetricName, type ScoredItem } from "../../src/evaluation/item.ts";
import type { EvaluationResult } from "../../src/evaluation/result.ts";
import { random } from "../../src/shared/random.ts";

/**
 * One row for each seed, in one order of the questions; questions without the metric in some seed are left out. A list of
 * metrics has one for each of `runs`.
 */
export function matrices(
  runs: readonly (readonly EvaluationResult[])[],
  metric: MetricName | readonly MetricName[],
): readonly Matrix[] {
  const metricOf = (index: number): MetricName =>
    typeof metric === "string" ? metric : (metric[index] as MetricName);
  const columns = runs.map((seeds, index) => seeds.map((result) => valuesOf(result, metricOf(index))));
  const [first] = columns.flat();
  const keys = [...(first?.keys() ?? [])].filter((key) => columns.flat().every((values) => values.has(key)));
  return columns.map((seeds) => seeds.map((values) => keys.map((key) => values.get(key) as number)));
}

function valuesOf({ items }: EvaluationResult, metric: MetricName): ReadonlyMap<string, number> {
  const scored = items.filter((item): item is ScoredItem => !item.failed && item[metric] !== undefined);
  return new Map(scored.map((item) => [itemKey(item), item[metric] as number]));
}

/** Mean of a metric over seeds and questions; undefined without either. */
export function estimateOf(runs: readonly EvaluationResult[], metric: MetricName): Estimate | undefined {
  const [values = []] = matrices([runs], metric);
  return bootstrapSeeds(values, { seed: 1 });
}

export interface Pair {
  /** Of the same seeds, in the same order. */
  readonly variant: readonly EvaluationResult[];
  readonly baseline: readonly EvaluationResult[];
}

/** Mean of variant - baseline, paired by seed and question. */
export function differenceOf(
  { variant, baseline }: Pair,
  metric: MetricName,
  baselineMetric: MetricName = metric,
): Estimate | undefined {
  const [own = [], other = []] = matrices([variant, baseline], [metric, baselineMetric]);
  return bootstrapSeeds(less(own, other), { seed: 1 });
}

/** Mean of the variant over mean of the baseline; undefined where the baseline's is 0, or in a resample may be. */
export function ratioOf({ variant, baseline }: Pair, metric: MetricName): Estimate | undefined {
  const [own = [], other = []] = matrices([variant, baseline], metric);
  return quotient(own, other);
}

/**
 * (variant - baseline) / (ceiling - baseline), of means: the share of the way from the baseline to the ceiling. Undefined
 * where the ceiling is not above the baseline, or in a resample may not be.
 */
export function gapShareOf(
  { variant, baseline, ceiling }: Pair & { readonly ceiling: readonly EvaluationResult[] },
  metric: MetricName,
): Estimate | undefined {
  const [own = [], other = [], most = []] = matrices([variant, baseline, ceiling], metric);
  return quotient(less(own, other), less(most, other));
}

type Matrix = readonly (readonly number[])[];

function less(a: Matrix, b: Matrix): Matrix {
  return a.map((row, seed) =>
    row.map((value, question) => value - ((b[seed] as readonly number[])[question] as number)),
  );
}

/** Ratio of the means of two matrices (seeds, questions); undefined where a resample's denominator is not above 0. */
function quotient(above: Matrix, below: Matrix): Estimate | undefined {
  const n = above[0]?.length ?? 0;
  if (n === 0) return undefined;
  const chance = random(1, "ratio");
  const ratioAt = (seeds: readonly number[], questions: readonly number[]): number => {
    const denominator = sumAt(below, seeds, questions);
    return denominator > 0 ? sumAt(above, seeds, questions) / denominator : Number.NaN;
  };
  const ratios = Array.from({ length: 2000 }, () => {
    const questions = Array.from({ length: n }, () => chance.below(n));
    const seeds = above.map(() => chance.below(above.length));
    return ratioAt(seeds, questions);
  });
  if (ratios.some((ratio) => Number.isNaN(ratio))) return undefined;
  ratios.sort((a, b) => a - b);
  const mean = ratioAt(
    above.map((_, seed) => seed),
    Array.from({ length: n }, (_, i) => i),
  );
  return { n, mean, ci: [ratios[49] as number, ratios[1949] as number] };
}

function sumAt(values: Matrix, seeds: readonly number[], questions: readonly number[]): number {
  let sum = 0;
  for (const seed of seeds)
    for (const question of questions) sum += (values[seed] as readonly number[])[question] as number;
  return sum;
}
