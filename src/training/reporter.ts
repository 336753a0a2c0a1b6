/** What a training tells while it runs. The loop decides nothing about how it looks; the command line does. */
import type { EvaluationResult } from "../evaluation/result.ts";
import type { MetricRow } from "../reporting/metric-row.ts";
import type { Trajectory } from "../rollout/trajectory.ts";

export interface TrainingReporter {
  /** Something longer begins that has no steps, such as building the index. */
  message(text: string): void;
  /** A stage starts or goes on; `done` of its `steps` are behind it. */
  stageStarted(stage: {
    readonly name: string;
    readonly type: string;
    readonly steps: number;
    readonly done: number;
  }): void;
  stepDone(row: MetricRow): void;
  /** A trajectory that was just sampled, now and then. */
  sample(trajectory: Trajectory, reward: number): void;
  evaluationProgress(progress: {
    readonly name: string;
    readonly done: number;
    readonly total: number;
  }): void;
  evaluationDone(evaluation: { readonly name: string; readonly result: EvaluationResult }): void;
}

export const silentReporter: TrainingReporter = {
  message: () => undefined,
  stageStarted: () => undefined,
  stepDone: () => undefined,
  sample: () => undefined,
  evaluationProgress: () => undefined,
  evaluationDone: () => undefined,
};
