/** Scores of runs as tables and remarks for people. Pure. */
import type { MetricComparison } from "../evaluation/ranking/compare-runs.ts";
import type { Averaging, RunScore } from "../evaluation/ranking/score-run.ts";
import { alignColumns } from "./result-text.ts";

export interface ScoredRun {
  readonly path: string;
  /** Whether it has no result for any query. */
  readonly isEmpty: boolean;
  /** By the qrels, by the answers, or both. */
  readonly scores: readonly RunScore[];
  /** Mean share of the first ten results that are judged; undefined without qrels or results. */
  readonly judged: number | undefined;
}

const digits = 4;

/** A row for each metric. */
export function scoreTable({ scores }: ScoredRun): string {
  const rows = scores.flatMap(({ means }) =>
    Object.entries(means).map(([name, { mean, ci, n }]) => [
      name,
      mean.toFixed(digits),
      interval(ci),
      String(n),
    ]),
  );
  return alignColumns([["metric", "mean", "95 % interval", "queries"], ...rows]);
}

/** A row for each query, a column for each metric. */
export function queryTable({ scores }: ScoredRun): string {
  return scores
    .map(({ queries, means }) => {
      const names = Object.keys(means);
      const rows = queries.map(({ id, values }) => [
        id,
        ...names.map((name) => (values[name] ?? 0).toFixed(digits)),
      ]);
      return `${alignColumns([["query", ...names], ...rows])}\n`;
    })
    .join("\n");
}

/** A row for each metric, and what the verdicts go by. */
export function comparisonTable(
  differences: readonly MetricComparison[],
  names: { readonly before: string; readonly after: string },
): string {
  const rows = differences.map(({ metric, before, after, mean, ci, adjustedP, n, verdict }) => [
    metric,
    before.toFixed(digits),
    after.toFixed(digits),
    `${mean > 0 ? "+" : ""}${mean.toFixed(digits)}`,
    interval(ci),
    adjustedP.toPrecision(2),
    String(n),
    verdict,
  ]);
  const head = [
    "metric",
    names.before,
    names.after,
    "difference",
    "95 % interval",
    "p",
    "queries",
    "verdict",
  ];
  const correction = differences.length > 1 ? `, p corrected for ${differences.length} metrics (Holm)` : "";
  return `${alignColumns([head, ...rows])}\npaired randomisation test${correction}; the verdict is on ${names.after}`;
}

function interval([low, high]: readonly [number, number]): string {
  return `${low.toFixed(digits)} to ${high.toFixed(digits)}`;
}

export interface ScoreNote {
  readonly path: string;
  readonly note: string;
}

/** What a reader of the numbers should know. */
export function scoreNotes({ path, isEmpty, scores, judged }: ScoredRun, averaging: Averaging): ScoreNote[] {
  const notes: string[] = [];
  const [first] = scores;
  if (isEmpty) notes.push("the run is empty: no query found anything");
  if (first !== undefined && first.withoutResults > 0)
    notes.push(
      averaging === "judged"
        ? `${first.withoutResults} queries have no result and count 0 (--only-retrieved leaves them out)`
        : `${first.withoutResults} queries without a result are left out`,
    );
  if (first !== undefined && first.withoutJudgement > 0)
    notes.push(`${first.withoutJudgement} queries of the run are left out: nobody judged them`);
  if (first !== undefined && first.withoutRelevant > 0)
    notes.push(`${first.withoutRelevant} queries have no relevant passage and count 0`);
  if (judged === 0)
    notes.push("none of the first ten results of any query is judged; do run and qrels name passages alike?");
  return notes.map((note) => ({ path, note }));
}
