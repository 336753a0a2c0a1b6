/**
 * Two results on the same questions, compared question by question. Results whose contracts differ are refused,
 * or compared by force and labelled with what differs.
 */
import { ForagerError } from "../errors.ts";
import { type ContractDifference, contractDifferences } from "./contract.ts";
import { groupBy } from "./group-by.ts";
import { costMetrics, type Item, itemKey, type MetricName, metricNames, type ScoredItem } from "./item.ts";
import { type PairedDifference, pairedTest } from "./paired-test.ts";
import type { EvaluationResult } from "./result.ts";

/** Thrown for results that do not measure the same thing; `differences` says where. */
export class IncomparableError extends ForagerError {
  readonly differences: readonly ContractDifference[];
  constructor(message: string, differences: readonly ContractDifference[]) {
    super("usage", message);
    this.differences = differences;
  }
}

/** The refusal of results that differ where they must not; a comparison by force labels them with it instead. */
export function notComparable(differences: readonly ContractDifference[]): IncomparableError {
  const shown = (value: unknown): string => (value === undefined ? "absent" : String(value).slice(0, 24));
  const where = differences.map(({ key, a, b }) => `${key} is ${shown(a)} and ${shown(b)}`);
  return new IncomparableError(
    `these results do not measure the same thing: ${where.join("; ")}. Evaluate again under one contract, or compare them by force`,
    differences,
  );
}

/** Differences b - a, metric by metric; a metric that no pair has is absent. */
export type Differences = { readonly [name in MetricName]?: PairedDifference };

export interface Comparison {
  /** Where the contracts differ; not empty only when the comparison was forced, and to be shown with every number. */
  readonly contractDifferences: readonly ContractDifference[];
  /** Questions scored in both results. */
  readonly pairs: number;
  /** Questions that are in one result only, and those that failed in at least one. */
  readonly unpaired: number;
  readonly failed: number;
  readonly overall: Differences;
  readonly byDataset: Readonly<Record<string, Differences>>;
  readonly byHops: Readonly<Record<string, Differences>>;
}

/**
 * Compares `b` with `a` (after with before), paired by question key. Throws `IncomparableError` when the contracts
 * differ in more than model and seed and `force` is not set, and when no question is scored in both.
 */
export function compareResults(
  a: EvaluationResult,
  b: EvaluationResult,
  options: { readonly force?: boolean; readonly seed: number },
): Comparison {
  const differences = contractDifferences(a.contract, b.contract);
  if (differences.length > 0 && !options.force) throw notComparable(differences);
  const { pairs, ...counts } = pairItems(a.items, b.items);
  if (pairs.length === 0)
    throw new IncomparableError(
      "no question is scored in both results; evaluate both on the same questions",
      differences,
    );
  const by = (keyOf: (item: Item) => string | undefined): Record<string, Differences> =>
    Object.fromEntries(
      [...groupBy(pairs, ([item]) => keyOf(item))].map(([key, group]) => [
        key,
        differencesOf(group, options.seed),
      ]),
    );
  return {
    contractDifferences: differences,
    pairs: pairs.length,
    ...counts,
    overall: differencesOf(pairs, options.seed),
    byDataset: by(({ dataset }) => dataset),
    byHops: by(({ hops }) => hops?.toString()),
  };
}

type Pair = readonly [a: ScoredItem, b: ScoredItem];

function pairItems(
  a: readonly Item[],
  b: readonly Item[],
): { pairs: Pair[]; unpaired: number; failed: number } {
  const others = new Map(b.map((item) => [itemKey(item), item]));
  const both = a.flatMap((item) => {
    const other = others.get(itemKey(item));
    return other ? [[item, other] as const] : [];
  });
  const pairs = both.flatMap(([left, right]) =>
    left.failed || right.failed ? [] : [[left, right] as const],
  );
  return { pairs, unpaired: a.length + b.length - 2 * both.length, failed: both.length - pairs.length };
}

function differencesOf(pairs: readonly Pair[], seed: number): Differences {
  const entries = metricNames.flatMap((name) => {
    const measured = pairs.flatMap(([a, b]) => {
      const before = a[name];
      const after = b[name];
      return before === undefined || after === undefined ? [] : [{ before, after }];
    });
    const difference = pairedTest(
      measured.map(({ before }) => before),
      measured.map(({ after }) => after),
      { seed, better: costMetrics.has(name) ? "lower" : "higher" },
    );
    return difference ? [[name, difference] as const] : [];
  });
  return Object.fromEntries(entries);
}
