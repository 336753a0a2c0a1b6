/**
 * Bootstrap intervals of a mean (Efron and Tibshirani 1993): resample with replacement, take the percentiles of the
 * resampled means. Over questions for one run; over seeds and questions for several (the pigeonhole bootstrap of
 * Owen 2007, which is conservative). Seeded: equal values and seed give equal intervals.
 * Where all values are equal the interval has no width; it cannot know of rare exceptions that were not drawn.
 */
import { z } from "zod";
import { assert } from "../errors.ts";
import { type Random, random } from "../shared/random.ts";

export const estimateSchema = z.object({
  /** Questions the mean is over. */
  n: z.int().min(1),
  mean: z.number(),
  /** 95 % interval, low and high. */
  ci: z.tuple([z.number(), z.number()]),
});

export type Estimate = Readonly<z.infer<typeof estimateSchema>>;

export interface BootstrapOptions {
  readonly seed: number;
  /** Default 2000. */
  readonly resamples?: number;
}

const level = 0.95;
const defaultResamples = 2000;

/** Mean of `values` with its 95 % interval; undefined for no values. */
export function bootstrapMean(values: readonly number[], options: BootstrapOptions): Estimate | undefined {
  return bootstrapMeans([values], options)[0];
}

/**
 * The same for several columns of equal length, such as the metrics of the same questions: each resample draws its
 * questions once for all columns, which gives every column the interval it has alone and saves the draws.
 */
export function bootstrapMeans(
  columns: readonly (readonly number[])[],
  options: BootstrapOptions,
): Estimate[] {
  const n = columns[0]?.length ?? 0;
  assert(
    columns.every((column) => column.length === n),
    "columns have equal length",
  );
  if (n === 0) return [];
  const chance = random(options.seed, "bootstrap");
  const data = columns.map((column) => Float64Array.from(column));
  const resamples = options.resamples ?? defaultResamples;
  const means = data.map(() => new Float64Array(resamples));
  for (let r = 0; r < resamples; r++) {
    const counts = drawCounts(n, chance);
    for (let c = 0; c < data.length; c++) (means[c] as Float64Array)[r] = weightedSum(data[c], counts) / n;
  }
  return data.map((column, c) => ({ n, mean: mean(column), ci: interval(means[c] as Float64Array) }));
}

/**
 * Mean of `values` (seeds, questions), every seed over the same questions in the same order, with an interval that
 * holds for other seeds and other questions: both are resampled. With few seeds it is still too narrow by about
 * the root of (seeds - 1) / seeds. `n` counts questions.
 */
export function bootstrapSeeds(
  values: readonly (readonly number[])[],
  options: BootstrapOptions,
): Estimate | undefined {
  const n = values[0]?.length ?? 0;
  assert(
    values.every((row) => row.length === n),
    "every seed has a value for every question",
  );
  if (n === 0) return undefined;
  const chance = random(options.seed, "bootstrap-seeds");
  const rows = values.map((row) => Float64Array.from(row));
  const means = Float64Array.from({ length: options.resamples ?? defaultResamples }, () => {
    const counts = drawCounts(n, chance);
    let sum = 0;
    for (let s = 0; s < rows.length; s++) sum += weightedSum(rows[chance.below(rows.length)], counts);
    return sum / (rows.length * n);
  });
  return { n, mean: mean(Float64Array.from(values.flat())), ci: interval(means) };
}

function mean(values: Float64Array): number {
  let sum = 0;
  for (const value of values) sum += value;
  return sum / values.length;
}

/** How often each of `n` questions is drawn when n are drawn with replacement. */
function drawCounts(n: number, chance: Random): Uint32Array {
  const counts = new Uint32Array(n);
  for (let i = 0; i < n; i++) {
    const drawn = chance.below(n);
    counts[drawn] = (counts[drawn] as number) + 1;
  }
  return counts;
}

function weightedSum(values: Float64Array | undefined, counts: Uint32Array): number {
  let sum = 0;
  for (let i = 0; i < counts.length; i++) sum += (values?.[i] as number) * (counts[i] as number);
  return sum;
}

/** The interval between the percentiles of resampled means, interpolated; sorts them. */
function interval(means: Float64Array): [number, number] {
  means.sort();
  return [quantile(means, (1 - level) / 2), quantile(means, (1 + level) / 2)];
}

function quantile(sorted: Float64Array, share: number): number {
  const place = share * (sorted.length - 1);
  const below = sorted[Math.floor(place)] as number;
  const above = sorted[Math.ceil(place)] as number;
  return below + (above - below) * (place - Math.floor(place));
}
