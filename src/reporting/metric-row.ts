/** One line of `metrics.jsonl`: what one step measured. Values that are not finite are `null` on disk and NaN here. */
import { z } from "zod";
import { assert } from "../errors.ts";
import { isMetricKey, type MetricKey } from "./metric-keys.ts";

export type MetricRow = {
  /** Name of the stage in the recipe. */
  readonly stage: string;
  /** Optimiser steps of the stage that are done; 0 = before the first. */
  readonly step: number;
} & { readonly [key in MetricKey]?: number };

/** A place in a run: after `step` steps of `stage`. */
export interface RunPosition {
  readonly stage: string;
  readonly step: number;
}

/** Reads a row; keys that this version does not know are left out. */
export const metricRowSchema: z.ZodType<MetricRow> = z
  .object({ stage: z.string(), step: z.int().min(0) })
  .catchall(z.unknown())
  .transform(({ stage, step, ...values }, context): MetricRow => {
    const metrics: Partial<Record<MetricKey, number>> = {};
    for (const [key, value] of Object.entries(values)) {
      if (!isMetricKey(key)) continue;
      if (value !== null && typeof value !== "number")
        context.addIssue({ code: "custom", path: [key], message: "expected a number or null" });
      else metrics[key] = value ?? Number.NaN;
    }
    return { stage, step, ...metrics };
  });

/** The JSON form of a row. */
export function toStoredRow(row: MetricRow): Record<string, unknown> {
  for (const key of Object.keys(row))
    assert(
      key === "stage" || key === "step" || isMetricKey(key),
      `metric key ${key} is not in metric-keys.ts`,
    );
  return Object.fromEntries(
    Object.entries(row)
      .filter(([, value]) => value !== undefined)
      .map(([key, value]) => [key, typeof value === "number" && !Number.isFinite(value) ? null : value]),
  );
}

/** Names of stages in the order in which they appear. */
export function stageOrder(records: readonly RunPosition[]): string[] {
  return [...new Set(records.map(({ stage }) => stage))];
}

/**
 * The records that are not past `position`: all of earlier stages, and those of its stage up to its step. A stage
 * that is not in `stages` (in the order of the run) comes after all that are.
 */
export function recordsUntil<T extends RunPosition>(
  records: readonly T[],
  position: RunPosition,
  stages: readonly string[],
): T[] {
  const rank = (stage: string): number => (stages.includes(stage) ? stages.indexOf(stage) : stages.length);
  return records.filter(({ stage, step }) =>
    stage === position.stage ? step <= position.step : rank(stage) < rank(position.stage),
  );
}
