/** What a finished training has achieved: before against after, for people and for programs. */
import { compareResults } from "../evaluation/compare-results.ts";
import { describeDifference, type PairedDifference } from "../evaluation/paired-test.ts";
import type { EvaluationResult } from "../evaluation/result.ts";
import type { TrainingSummary } from "../training/train.ts";
import { beforeAfterTable } from "./result-text.ts";

export interface TrainingCost {
  /** Wall time of the command. */
  readonly seconds: number;
  /** Largest resident memory of the process. */
  readonly peakBytes: number;
}

/** The time since `startedMs` and the memory so far. */
export function costSince(startedMs: number, nowMs: number): TrainingCost {
  return { seconds: (nowMs - startedMs) / 1000, peakBytes: process.resourceUsage().maxRSS * 1024 };
}

/** Head of a result: `em` and `ci` are null where nothing was scored. */
function head({ summary: { overall } }: EvaluationResult): Record<string, unknown> {
  return {
    em: overall.em?.mean ?? null,
    ci: overall.em?.ci ?? null,
    n: overall.n,
    searches: overall.searches?.mean ?? null,
  };
}

/** The stable JSON of `quickstart` and `train`. */
export function summaryJson(summary: TrainingSummary, cost: TrainingCost): Record<string, unknown> {
  const difference = exactMatchDifference(summary);
  return {
    run: summary.folder,
    ...cost,
    before: head(summary.before),
    after: head(summary.after),
    difference: difference && { mean: difference.mean, ci: difference.ci, p: difference.p },
  };
}

/** The table and the verdict. */
export function summaryText(summary: TrainingSummary, { seconds, peakBytes }: TrainingCost): string {
  const difference = exactMatchDifference(summary);
  const names = { metric: "exact match", before: "before", after: "after" };
  return [
    beforeAfterTable(summary.before, summary.after),
    "",
    ...(difference ? [describeDifference(difference, names)] : []),
    `${(seconds / 60).toFixed(1)} minutes, at most ${(peakBytes / 2 ** 20).toFixed(0)} MB of memory`,
  ].join("\n");
}

function exactMatchDifference({ before, after }: TrainingSummary): PairedDifference | undefined {
  return compareResults(before, after, { seed: 1 }).overall.em;
}
