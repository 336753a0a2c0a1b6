/**
 * The switch between two stages: when a stage with `until` is over and which of its weights go on, what the next one
 * carries over, and whose start is its reference. Pure: metric rows in, so that a resumed run decides the same.
 */
import { learningRate } from "../algorithm/schedule.ts";
import type { ReinforcementStage, Stage, UntilOptions } from "../config/stage-options.ts";
import type { EvaluationResult } from "../evaluation/result.ts";
import type { MetricRow } from "../reporting/metric-row.ts";

/** The rule by which a stage ends early, if it has one. */
export function untilOf(stage: Stage): UntilOptions | undefined {
  return stage.type === "reinforcement" ? stage.until : undefined;
}

/** What the stage carries over from the one before. */
export function carryOf(stage: Stage): ReinforcementStage["carry"] {
  return stage.type === "reinforcement" ? stage.carry : [];
}

/** True after a step that `until` wants measured, and after the last one, unless it is done. */
export function isValidationDue(stage: Stage, row: MetricRow): boolean {
  const until = untilOf(stage);
  if (!until || row["validation/n"] !== undefined) return false;
  return row.step % until.everySteps === 0 || row.step === stage.steps;
}

/** What a measurement adds to the step's row; without a score when every question failed. */
export function validationMetrics(
  { summary }: EvaluationResult,
  { metric }: UntilOptions,
): Partial<MetricRow> {
  const estimate = summary.overall[metric];
  return {
    "validation/n": summary.overall.n,
    ...(estimate && { [`validation/${metric}`]: estimate.mean }),
  };
}

export interface ValidationVerdict {
  /** Step with the best score so far, the first of equals; undefined before the first measurement. */
  readonly bestStep: number | undefined;
  /** True when patience is over. */
  readonly isOver: boolean;
}

/** Judges the rows of a stage so far. Measurements without a score are no evidence either way. */
export function judgeValidation(
  history: readonly MetricRow[],
  { metric, patience }: Pick<UntilOptions, "metric" | "patience">,
): ValidationVerdict {
  let best: { readonly step: number; readonly score: number } | undefined;
  let since = 0;
  for (const row of history) {
    const score = row[`validation/${metric}`];
    if (score === undefined || Number.isNaN(score)) continue;
    if (best === undefined || score > best.score) {
      best = { step: row.step, score };
      since = 0;
    } else since++;
  }
  return { bestStep: best?.step, isOver: since >= patience };
}

/** Steps behind the weights with which a finished stage goes on; `rows` are of all stages. */
export function stepsTaken(stage: Stage, rows: readonly MetricRow[]): number {
  const until = untilOf(stage);
  if (!until) return stage.steps;
  const history = rows.filter((row) => row.stage === stage.name);
  return judgeValidation(history, until).bestStep ?? history.at(-1)?.step ?? 0;
}

/** Steps of earlier stages from which the schedule of stage `index` goes on. */
export function stepsCarried(stages: readonly Stage[], index: number, rows: readonly MetricRow[]): number {
  const [stage, before] = [stages[index], stages[index - 1]];
  if (!stage || !before || !carryOf(stage).includes("schedule")) return 0;
  return stepsTaken(before, rows) + stepsCarried(stages, index - 1, rows);
}

/** The stage whose start is the reference of stage `index`. */
export function referenceStage(stages: readonly Stage[], index: number): Stage {
  const stage = stages[index] as Stage;
  return carryOf(stage).includes("reference") ? referenceStage(stages, index - 1) : stage;
}

/** The learning rate of step `step` (from 0) of a stage whose schedule goes on after `carried` steps. */
export function stageRate(stage: Stage, step: number, carried = 0): number {
  return learningRate(step + carried, { ...stage.schedule, totalSteps: stage.steps + carried });
}
