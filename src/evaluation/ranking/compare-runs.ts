/**
 * Two scored runs, compared query by query: for each metric the mean difference with its interval and the p of the
 * paired randomisation test (`paired-test.ts`). Several metrics are several chances to be lucky, so verdicts go by
 * p values adjusted for that (`holm.ts`). One metric keeps its p.
 */
import { holm } from "../holm.ts";
import { type DifferenceVerdict, type PairedDifference, pairedTest } from "../paired-test.ts";
import type { RunScore } from "./score-run.ts";

export interface MetricComparison extends PairedDifference {
  readonly metric: string;
  /** The means over the queries of both. */
  readonly before: number;
  readonly after: number;
  /** `p` after Holm's correction over all metrics compared; `verdict` goes by it. */
  readonly adjustedP: number;
}

const significance = 0.05;

/**
 * Compares `after` with `before` in each metric that both have, over the queries that both have. Several scores a
 * side (such as passages and answers) are corrected together. Empty when nothing is in common.
 */
export function compareScores(
  before: readonly RunScore[],
  after: readonly RunScore[],
  { seed }: { readonly seed: number },
): MetricComparison[] {
  const columns = before.flatMap((score, i) => pairedColumns(score, after[i]));
  const tested = columns.flatMap(({ metric, left, right }) => {
    const difference = pairedTest(left, right, { seed });
    return difference === undefined
      ? []
      : [{ ...difference, metric, before: mean(left), after: mean(right) }];
  });
  const adjusted = holm(tested.map(({ p }) => p));
  return tested.map((difference, i) => {
    const adjustedP = adjusted[i] as number;
    return { ...difference, adjustedP, verdict: verdictOf(difference.mean, adjustedP) };
  });
}

interface Columns {
  readonly metric: string;
  readonly left: readonly number[];
  readonly right: readonly number[];
}

function pairedColumns(before: RunScore, after: RunScore | undefined): Columns[] {
  const others = new Map(after?.queries.map((query) => [query.id, query.values]));
  const pairs = before.queries.flatMap(({ id, values }) => {
    const other = others.get(id);
    return other === undefined ? [] : [[values, other] as const];
  });
  return Object.keys(before.means)
    .filter((metric) => after?.means[metric] !== undefined)
    .map((metric) => ({
      metric,
      left: pairs.map(([values]) => values[metric] as number),
      right: pairs.map(([, values]) => values[metric] as number),
    }));
}

function verdictOf(difference: number, p: number): DifferenceVerdict {
  if (p >= significance) return "not distinguishable";
  return difference > 0 ? "better" : "worse";
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
