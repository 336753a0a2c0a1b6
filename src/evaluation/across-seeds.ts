/**
 * Several seeds of one method as one result of the table of methods: each question's means over the seeds, with intervals of
 * the scores that hold for other seeds and other questions (two-level bootstrap, `bootstrap.ts`). A question that failed
 * in one seed is failed.
 */
import { UsageError } from "../errors.ts";
import { type Breakdown, summarize } from "./aggregate.ts";
import { bootstrapSeeds } from "./bootstrap.ts";
import { seedDifference } from "./compare-seeds.ts";
import { contractDifferences } from "./contract.ts";
import { costMetrics, type Item, itemKey, type MetricName, metricNames, type ScoredItem } from "./item.ts";
import type { PairedDifference } from "./paired-test.ts";
import type { EvaluationResult } from "./result.ts";

/** One result of `runs`, with such intervals of `metric`. Throws `UsageError` where they do not measure the same thing. */
export function acrossSeeds(
  runs: readonly EvaluationResult[],
  { seed, metric }: { readonly seed: number; readonly metric: MetricName },
): EvaluationResult {
  const [first] = runs;
  if (first === undefined) throw new UsageError("expected at least one result of a method, got none");
  const differences = runs.flatMap(({ contract }) => contractDifferences(first.contract, contract));
  if (differences.length > 0)
    throw new UsageError(
      `seeds of one method must measure the same thing; these differ in ${[...new Set(differences.map(({ key }) => key))].join(", ")}`,
    );
  if (runs.length === 1) return first;
  const { cost: _, selective: __, ...result } = first;
  const items = first.items.map((item) => meanItem(item, runs.map(itemsByKey)));
  const summary = summarize(items, { seed });
  const widened = (part: Breakdown, set?: string): Breakdown => {
    const [matrix = []] = seedMatrices([runs], metric, set);
    const estimate = bootstrapSeeds(matrix, { seed });
    return estimate ? { ...part, [metric]: estimate } : part;
  };
  const byDataset = Object.entries(summary.byDataset).map(([set, part]) => [set, widened(part, set)]);
  return {
    ...result,
    items,
    summary: { ...summary, overall: widened(summary.overall), byDataset: Object.fromEntries(byDataset) },
  };
}

function itemsByKey({ items }: EvaluationResult): ReadonlyMap<string, Item> {
  return new Map(items.map((item) => [itemKey(item), item]));
}

function meanItem(item: Item, runs: readonly ReadonlyMap<string, Item>[]): Item {
  const all = runs.map((items) => items.get(itemKey(item)));
  const scored = all.filter((each): each is ScoredItem => each?.failed === false);
  const { dataset, id, stopReason } = item;
  if (item.failed || scored.length < all.length) {
    const failure = all.find((each) => each === undefined || each.failed);
    return {
      dataset,
      id,
      stopReason: failure?.stopReason ?? stopReason,
      failed: true,
      failure: failure?.failed === true ? failure.failure : "not asked with every seed",
    };
  }
  const means = metricNames.flatMap((name) => {
    const values = scored.flatMap((each) => each[name] ?? []);
    const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
    return values.length < scored.length ? [] : [[name, mean] as const];
  });
  const { answer: _, confidence: __, goldFound: ___, ...rest } = item;
  const without = Object.fromEntries(Object.entries(rest).filter(([name]) => !isMetric(name)));
  return { ...without, ...Object.fromEntries(means) } as unknown as ScoredItem;
}

function isMetric(name: string): boolean {
  return (metricNames as readonly string[]).includes(name);
}

/** (sides, seeds, questions) of a metric, over the questions of a set that every run scored, in one order. */
function seedMatrices(
  sides: readonly (readonly EvaluationResult[])[],
  metric: MetricName,
  set: string | undefined,
): readonly (readonly (readonly number[])[])[] {
  const columns = sides.map((runs) =>
    runs.map(({ items }) => {
      const own = items.filter(
        (item): item is ScoredItem =>
          !item.failed && item[metric] !== undefined && (set === undefined || item.dataset === set),
      );
      return new Map(own.map((item) => [itemKey(item), item[metric] as number]));
    }),
  );
  const all = columns.flat();
  const keys = [...(all[0]?.keys() ?? [])].filter((key) => all.every((values) => values.has(key)));
  return columns.map((runs) => runs.map((values) => keys.map((key) => values.get(key) as number)));
}

/** What a method of several seeds differs by from a reference, also of one; undefined without a common question. */
export function differenceAcrossSeeds(
  sides: { readonly before: readonly EvaluationResult[]; readonly after: readonly EvaluationResult[] },
  {
    metric,
    set,
    seed,
  }: { readonly metric: MetricName; readonly set: string | undefined; readonly seed: number },
): PairedDifference | undefined {
  const seedsOf = (runs: readonly EvaluationResult[]): string =>
    runs.map(({ contract }) => contract.seed).join();
  const before = bySeed(sides.before);
  const after = bySeed(sides.after);
  const [a = [], b = []] = seedMatrices([before, after], metric, set);
  const isUnique = new Set(before.map(({ contract }) => contract.seed)).size === before.length;
  return seedDifference(a, b, {
    isPaired: isUnique && seedsOf(before) === seedsOf(after),
    seed,
    isCost: costMetrics.has(metric),
  });
}

function bySeed(runs: readonly EvaluationResult[]): readonly EvaluationResult[] {
  return runs.toSorted((a, b) => a.contract.seed - b.contract.seed);
}
