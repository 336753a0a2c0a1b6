/**
 * From items to the numbers of a table: every metric with n, mean and 95 % interval, over all questions and by data
 * set, hops and kind. Failed items are counted beside the means, not in them.
 */
import { z } from "zod";
import { bootstrapMean, bootstrapMeans, type Estimate, estimateSchema } from "./bootstrap.ts";
import { groupBy } from "./group-by.ts";
import { type Item, type MetricName, metricNames, type ScoredItem } from "./item.ts";

export const breakdownSchema = z.object({
  /** Questions that were scored. */
  n: z.int().min(0),
  /** Questions without a score because the world failed. */
  failed: z.int().min(0),
  /** Absent where no question has the metric. */
  ...(Object.fromEntries(metricNames.map((name) => [name, z.exactOptional(estimateSchema)])) as Record<
    MetricName,
    z.ZodExactOptional<typeof estimateSchema>
  >),
});

export const summarySchema = z.object({
  overall: breakdownSchema,
  /** Unweighted mean of the data sets' exact match, the average of published tables; absent when one of them has no score. */
  macroEm: z.exactOptional(z.number()),
  byDataset: z.record(z.string(), breakdownSchema),
  byHops: z.record(z.string(), breakdownSchema),
  /** Recall of the first gold passage, the second, and so on, which is the order of hops where the data has one. */
  recallByHop: z.exactOptional(z.array(estimateSchema)),
  byKind: z.record(z.string(), breakdownSchema),
});

export type Breakdown = Readonly<z.infer<typeof breakdownSchema>>;
export type Summary = Readonly<z.infer<typeof summarySchema>>;

/** All the numbers of an evaluation; `seed` drives the intervals. Items without hops or kind are left out of those tables. */
export function summarize(items: readonly Item[], options: { readonly seed: number }): Summary {
  const byDataset = breakDown(items, ({ dataset }) => dataset, options);
  const means = Object.values(byDataset).flatMap(({ em }) => em?.mean ?? []);
  const isWhole = means.length > 0 && means.length === Object.keys(byDataset).length;
  return {
    overall: breakdownOf(items, options),
    ...(isWhole && { macroEm: means.reduce((sum, value) => sum + value, 0) / means.length }),
    byDataset,
    byHops: breakDown(items, ({ hops }) => hops?.toString(), options),
    ...recallByHop(items, options),
    byKind: breakDown(items, ({ kind }) => kind, options),
  };
}

function recallByHop(
  items: readonly Item[],
  options: { readonly seed: number },
): { readonly recallByHop?: Estimate[] } {
  const found = items.flatMap((item) =>
    item.failed || item.goldFound === undefined ? [] : [item.goldFound],
  );
  const longest = found.reduce((most, { length }) => Math.max(most, length), 0);
  const hops = Array.from({ length: longest }, (_, hop) =>
    bootstrapMean(
      found.flatMap((each) => each[hop] ?? []),
      options,
    ),
  );
  return longest === 0 ? {} : { recallByHop: hops.filter((estimate) => estimate !== undefined) };
}

/** Every metric over `items`. */
export function breakdownOf(items: readonly Item[], options: { readonly seed: number }): Breakdown {
  const scored = items.filter((item): item is ScoredItem => !item.failed);
  const columns = metricNames.map((name) => ({ name, values: scored.flatMap((item) => item[name] ?? []) }));
  const complete = columns.filter(({ values }) => values.length === scored.length);
  const estimates = bootstrapMeans(
    complete.map(({ values }) => values),
    options,
  );
  const metrics = columns.flatMap((column) => {
    const place = complete.indexOf(column);
    const estimate = place >= 0 ? estimates[place] : bootstrapMean(column.values, options);
    return estimate ? [[column.name, estimate] as const] : [];
  });
  return { n: scored.length, failed: items.length - scored.length, ...Object.fromEntries(metrics) };
}

function breakDown(
  items: readonly Item[],
  keyOf: (item: Item) => string | undefined,
  options: { readonly seed: number },
): Record<string, Breakdown> {
  const groups = groupBy(items, keyOf);
  return Object.fromEntries([...groups].map(([key, members]) => [key, breakdownOf(members, options)]));
}
