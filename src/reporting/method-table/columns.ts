/** What a table of methods says of each method beside its score: other scores, and what they took. */
import type { MetricName } from "../../evaluation/item.ts";
import type { MethodTable } from "../../evaluation/method-table.ts";
import { formatCount, formatNumber, formatShare } from "../report/scale.ts";

export interface Column {
  readonly metric: MetricName;
  readonly label: string;
  /** A mean as it is shown. */
  readonly show: (mean: number) => string;
}

const share = (metric: MetricName, label: string): Column => ({
  metric,
  label,
  show: (mean) => mean.toFixed(3),
});
const count = (metric: MetricName, label: string): Column => ({ metric, label, show: formatCount });
const seconds = (metric: MetricName, label: string): Column => ({
  metric,
  label,
  show: (mean) => formatNumber(mean / 1000),
});
const dollars = (metric: MetricName, label: string): Column => ({
  metric,
  label,
  show: showDollars,
});

/** Money of one question: cents where it is much, else two digits that count. */
export function showDollars(value: number): string {
  if (value === 0 || value >= 1) return `$${value.toFixed(2)}`;
  const digits = Math.min(12, 1 - Math.floor(Math.log10(value)));
  return `$${value.toFixed(digits)}`;
}

/** Scores; more is better, but of the deficiencies and of abstaining. */
const scores: readonly Column[] = [
  share("em", "exact match"),
  share("coverEm", "cover EM"),
  share("f1", "F1"),
  share("score", "judge"),
  share("retrievalRecall", "gold found"),
  share("answerRetrieved", "answer found"),
  share("answerSupported", "answer supported"),
  share("abstained", "abstained"),
  share("anyDeficiency", "any deficiency"),
];

/** What a question took, means. */
const costs: readonly Column[] = [
  count("searches", "searches"),
  count("redundantSearches", "redundant"),
  count("searchesAfterEvidence", "after evidence"),
  count("policyTokens", "tokens written"),
  count("totalTokens", "tokens in all"),
  seconds("timeMs", "seconds"),
  seconds("retrievalMs", "of these retrieval"),
  seconds("rankerMs", "of these ranking"),
  dollars("totalDollars", "dollars"),
  count("judgeTokens", "tokens of judging"),
  dollars("judgeDollars", "dollars of judging"),
];

/** The columns that some method of the table has; what never happened, abstaining or asking a judge, is none. */
export function shownColumns({ rows }: MethodTable): {
  readonly scores: readonly Column[];
  readonly costs: readonly Column[];
} {
  const isShown = ({ metric }: Column): boolean =>
    rows.some(({ result }) => {
      const mean = result?.summary.overall[metric]?.mean;
      return mean !== undefined && (mean > 0 || (metric !== "abstained" && metric !== "judgeTokens"));
    });
  return { scores: scores.filter(isShown), costs: costs.filter(isShown) };
}

/** The columns of a CSV file, always all. */
export const allColumns: readonly Column[] = [...scores, ...costs];

/** A metric's name in sentences. */
export function metricLabel(metric: MetricName): string {
  return allColumns.find((column) => column.metric === metric)?.label ?? metric;
}

/** A mean of the metric with three decimals where it is a share, else as counts are shown. */
export function showScore(metric: MetricName, mean: number): string {
  return allColumns.find((column) => column.metric === metric)?.show(mean) ?? formatShare(mean);
}
