/** For tests of whole trainings: one that is run into a folder, and the rows that it wrote. */
import type { Recipe } from "../config/recipe.ts";
import type { MetricRow } from "../reporting/metric-row.ts";
import { RunFolder } from "../reporting/run-folder.ts";
import { silentReporter, type TrainingReporter } from "./reporter.ts";
import { type TrainingSummary, train } from "./train.ts";

export interface RunOptions {
  readonly resume?: boolean;
  readonly signal?: AbortSignal;
  readonly reporter?: TrainingReporter;
}

/** Trains `recipe` into `folder`, in silence where no reporter is given. */
export async function runTraining(
  folder: string,
  recipe: Recipe,
  { resume = false, reporter = silentReporter, signal }: RunOptions = {},
): Promise<TrainingSummary> {
  const now = (): number => performance.now();
  return await train({ recipe, folder, resume, reporter, now, codeVersion: "test", signal });
}

export async function metricsIn(folder: string): Promise<MetricRow[]> {
  return await (await RunFolder.open(folder)).readMetrics();
}

/** Rows without what a clock or the machine decides. */
export function timeless(rows: readonly MetricRow[]): object[] {
  return rows.map((row) =>
    Object.fromEntries(Object.entries(row).filter(([key]) => !/^(time|rate|memory)\//.test(key))),
  );
}
