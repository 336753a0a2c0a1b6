/**
 * Two methods with several seeds each, over the same questions: the difference of their means with an interval that holds
 * for other seeds and other questions (two-level bootstrap, `bootstrap.ts`). Runs of equal seeds are paired; else the
 * seeds of each side are drawn for themselves, which is wider. p is twice the smaller share of resampled differences on
 * one side of 0, at least 2 / (resamples + 1).
 */
import { assert, UsageError } from "../errors.ts";
import { type Random, random } from "../shared/random.ts";
import type { Estimate } from "./bootstrap.ts";
import { IncomparableError, notComparable } from "./compare-results.ts";
import { type ContractDifference, contractDifferences } from "./contract.ts";
import { detectableDifference, sampleDeviation } from "./detectable.ts";
import { costMetrics, itemKey, type MetricName, type ScoredItem } from "./item.ts";
import type { DifferenceVerdict } from "./paired-test.ts";
import type { EvaluationResult } from "./result.ts";

export interface SeedDifference extends Estimate {
  readonly p: number;
  readonly verdict: DifferenceVerdict;
  /** Seeds of each side, and whether equal ones were paired. */
  readonly seeds: readonly [number, number];
  readonly isPaired: boolean;
  /** The least difference that so many seeds and questions can be expected to find, from the spread of the resamples; undefined without any. */
  readonly detectable: number | undefined;
  /** Means of both sides. */
  readonly before: number;
  readonly after: number;
}

export interface SeedComparison {
  readonly contractDifferences: readonly ContractDifference[];
  /** Questions that every run scored. */
  readonly questions: number;
  readonly overall: Readonly<Partial<Record<MetricName, SeedDifference>>>;
}

const resamples = 2000;
const significance = 0.05;

/**
 * Compares `after` with `before` in the named metrics. Throws `IncomparableError` when contracts differ in more than model
 * and seed and `force` is not set, and when no question is scored in every run.
 */
export function compareSeeds(
  {
    before,
    after,
  }: { readonly before: readonly EvaluationResult[]; readonly after: readonly EvaluationResult[] },
  metrics: readonly MetricName[],
  options: { readonly force?: boolean; readonly seed: number },
): SeedComparison {
  const [first] = before;
  if (first === undefined || after.length === 0)
    throw new UsageError("expected at least one result on each side, got none; name the results of both");
  const differences = differencesFrom(first, [...before, ...after]);
  if (differences.length > 0 && !options.force) throw notComparable(differences);
  const isPaired = seedsOf(before) === seedsOf(after);
  const sides = isPaired ? [bySeed(before), bySeed(after)] : [before, after];
  const overall: Partial<Record<MetricName, SeedDifference>> = {};
  let questions = 0;
  for (const metric of metrics) {
    const [a = [], b = []] = metricMatrices(sides, metric);
    questions = Math.max(questions, a[0]?.length ?? 0);
    const difference = seedDifference(a, b, {
      isPaired,
      seed: options.seed,
      isCost: costMetrics.has(metric),
    });
    if (difference) overall[metric] = difference;
  }
  if (questions === 0)
    throw new IncomparableError(
      "no question is scored in every run; evaluate all on the same questions",
      differences,
    );
  return { contractDifferences: differences, questions, overall };
}

/** Each difference from the first contract once. */
function differencesFrom(first: EvaluationResult, all: readonly EvaluationResult[]): ContractDifference[] {
  const found = all.flatMap(({ contract }) => contractDifferences(first.contract, contract));
  return [
    ...new Map(found.map((difference) => [`${difference.key}|${String(difference.b)}`, difference])).values(),
  ];
}

function bySeed(results: readonly EvaluationResult[]): readonly EvaluationResult[] {
  return results.toSorted((a, b) => a.contract.seed - b.contract.seed);
}

/** The seeds of runs in order; a seed that stands twice pairs with nothing. */
function seedsOf(results: readonly EvaluationResult[]): string {
  const seeds = bySeed(results).map(({ contract }) => contract.seed);
  return new Set(seeds).size < seeds.length
    ? `repeated ${results.map(({ contract }) => contract.model.model).join()}`
    : seeds.join();
}

/**
 * A metric of several groups of runs, (groups, seeds, questions), all over the same questions in one order: those that every
 * run scored and that have the metric everywhere.
 */
export function metricMatrices(
  groups: readonly (readonly EvaluationResult[])[],
  metric: MetricName,
): readonly (readonly (readonly number[])[])[] {
  const columns = groups.map((runs) => runs.map((result) => valuesOf(result, metric)));
  const all = columns.flat();
  const keys = [...(all[0]?.keys() ?? [])].filter((key) => all.every((values) => values.has(key)));
  return columns.map((runs) => runs.map((values) => keys.map((key) => values.get(key) as number)));
}

function valuesOf({ items }: EvaluationResult, metric: MetricName): ReadonlyMap<string, number> {
  const scored = items.filter((item): item is ScoredItem => !item.failed && item[metric] !== undefined);
  return new Map(scored.map((item) => [itemKey(item), item[metric] as number]));
}

/** Mean of `b` less mean of `a`, both (seeds, questions) over the same questions; undefined without questions. */
export function seedDifference(
  a: readonly (readonly number[])[],
  b: readonly (readonly number[])[],
  { isPaired, seed, isCost }: { readonly isPaired: boolean; readonly seed: number; readonly isCost: boolean },
): SeedDifference | undefined {
  const n = a[0]?.length ?? 0;
  if (n === 0) return undefined;
  assert(!isPaired || a.length === b.length, "paired seeds are equally many");
  const chance = random(seed, "seed-difference");
  const drawn = Float64Array.from({ length: resamples }, () => {
    const questions = draw(n, n, chance);
    const seedsA = draw(a.length, a.length, chance);
    const seedsB = isPaired ? seedsA : draw(b.length, b.length, chance);
    return meanAt(b, seedsB, questions) - meanAt(a, seedsA, questions);
  }).sort();
  const before = mean(a.flat());
  const after = mean(b.flat());
  const p = tailP(drawn);
  const isBetter = after > before !== isCost;
  return {
    n,
    mean: after - before,
    ci: [quantile(drawn, 0.025), quantile(drawn, 0.975)],
    p,
    verdict: p >= significance ? "not distinguishable" : isBetter ? "better" : "worse",
    seeds: [a.length, b.length],
    isPaired,
    detectable: detectableDifference(sampleDeviation([...drawn]), 1),
    before,
    after,
  };
}

function tailP(drawn: Float64Array): number {
  const below = drawn.filter((value) => value <= 0).length;
  const above = drawn.filter((value) => value >= 0).length;
  return Math.min(1, (2 * (Math.min(below, above) + 1)) / (drawn.length + 1));
}

function draw(count: number, from: number, chance: Random): Uint32Array {
  return Uint32Array.from({ length: count }, () => chance.below(from));
}

function meanAt(values: readonly (readonly number[])[], seeds: Uint32Array, questions: Uint32Array): number {
  let sum = 0;
  for (const row of seeds)
    for (const column of questions) sum += (values[row] as readonly number[])[column] as number;
  return sum / (seeds.length * questions.length);
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

function quantile(sorted: Float64Array, share: number): number {
  const place = share * (sorted.length - 1);
  const below = sorted[Math.floor(place)] as number;
  return below + ((sorted[Math.ceil(place)] as number) - below) * (place - Math.floor(place));
}
