/**
 * How much older the weights were that sampled than those that are trained first, in steps of the stage. Pure; reads
 * what the turns of an episode recorded.
 */
import { assert } from "../errors.ts";
import type { MetricRow } from "../reporting/metric-row.ts";
import type { Trajectory } from "../rollout/trajectory.ts";

export interface Staleness {
  /** Mean over the tokens that the policy sampled. */
  readonly mean: number;
  /** Of the oldest turn. */
  readonly max: number;
}

/** Staleness of what is trained in step `step` (from 0); undefined where no turn recorded its weights. */
export function stalenessOf(trajectories: readonly Trajectory[], step: number): Staleness | undefined {
  let tokens = 0;
  let sum = 0;
  let max = 0;
  let isRecorded = false;
  for (const { segments } of trajectories)
    for (const { weightsStep, tokens: ids } of segments) {
      if (weightsStep === undefined) continue;
      const age = step - weightsStep;
      assert(age >= 0, `a turn trained in step ${step} was sampled with weights of step ${weightsStep}`);
      isRecorded = true;
      tokens += ids.length;
      sum += ids.length * age;
      max = Math.max(max, age);
    }
  return isRecorded ? { mean: sum / Math.max(1, tokens), max } : undefined;
}

export function stalenessMetrics(staleness: Staleness | undefined): Partial<MetricRow> {
  return staleness === undefined ? {} : { "staleness/mean": staleness.mean, "staleness/max": staleness.max };
}
