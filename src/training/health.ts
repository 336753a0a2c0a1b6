/** What the watchdog sees of a stage. */
import { judgeCollapse, type StepHealth, type Verdict } from "../algorithm/collapse.ts";
import type { Stage } from "../config/stage-options.ts";
import type { MetricRow } from "../reporting/metric-row.ts";

/** Judges the steps of a stage so far. A supervised stage is watched for numbers that are none; it has no reward to lose. */
export function judgeHealth(stage: Stage, history: readonly MetricRow[]): Verdict {
  if (stage.type === "reinforcement") return judgeCollapse(history.map(healthOf), stage.collapse);
  const last = history.at(-1);
  const values = [last?.["loss/value"], last?.["gradient/norm"]];
  if (values.every((value) => value === undefined || Number.isFinite(value))) return { type: "ok" };
  return { type: "stop", reason: `the loss or its gradient is no number any more (${values.join(", ")})` };
}

/** Steps whose rewards are averaged to find the best ones. */
const bestWindow = 5;

/**
 * After how many steps the weights were at their best. What a step measures is due to the weights before it, so this
 * is the step before the end of the best moving average of the reward, or before the last one where none is given;
 * what the last step made of the weights is not known yet. Where older weights sampled, it is earlier by their age.
 */
export function bestStep(history: readonly MetricRow[]): number {
  let best = { row: history.at(-1), average: Number.NEGATIVE_INFINITY };
  for (let end = Math.min(bestWindow, history.length); end <= history.length; end++) {
    const rewards = history.slice(Math.max(0, end - bestWindow), end).map((row) => row["reward/mean"]);
    if (rewards.length === 0 || rewards.some((reward) => reward === undefined)) continue;
    const average = rewards.reduce<number>((sum, reward) => sum + (reward as number), 0) / rewards.length;
    if (average >= best.average) best = { row: history[end - 1], average };
  }
  const { step, "staleness/max": age = 0 } = best.row ?? { step: 1 };
  return Math.max(0, step - 1 - age);
}

function healthOf(row: MetricRow): StepHealth {
  const loss = row["loss/value"];
  const gradientNorm = row["gradient/norm"];
  const klDivergence = row["kl/sampling"];
  const criticLoss = row["critic/loss"];
  return {
    step: row.step,
    rewardMean: row["reward/mean"] ?? 0,
    validActionRate: 1 - (row["search/invalid"] ?? 0),
    policyTokens: row["length/policyTokens"] ?? 0,
    ...(loss !== undefined && { loss }),
    ...(gradientNorm !== undefined && { gradientNorm }),
    ...(klDivergence !== undefined && { klDivergence }),
    ...(criticLoss !== undefined && { criticLoss }),
  };
}
