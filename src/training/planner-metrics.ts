/** Metrics of the planner's episodes that one step sampled; pure. */
import type { MetricRow } from "../reporting/metric-row.ts";
import { type PlannerRewardOptions, plannerReward } from "../reward/planner-reward.ts";
import type { Assessment, Trajectory } from "../rollout/trajectory.ts";
import { queries } from "../rollout/trajectory-view.ts";
import type { PolicyUsage } from "../rollout/usage.ts";

/** Empty where no trajectory was judged. */
export function plannerMetrics(
  trajectories: readonly Trajectory[],
  options: PlannerRewardOptions | undefined,
): Partial<MetricRow> {
  const judged = trajectories.flatMap((trajectory) =>
    trajectory.assessment === undefined ? [] : [{ trajectory, assessment: trajectory.assessment }],
  );
  if (judged.length === 0 || options === undefined) return {};
  const parts = judged.map(({ trajectory }) => plannerReward(trajectory, options).parts);
  const generated = judged.flatMap(({ trajectory }) => trajectory.generated ?? []);
  return {
    "planner/score": mean(judged.map(({ assessment }) => assessment.score)),
    ...judgeMetrics(judged.map(({ assessment }) => assessment)),
    "planner/outcome": mean(parts.map(({ outcome }) => outcome)),
    "planner/process": mean(parts.map(({ process }) => process)),
    "planner/cost": mean(parts.map(({ cost }) => cost)),
    "planner/format": mean(parts.map(({ format }) => format)),
    "planner/subQueries": mean(judged.map(({ trajectory }) => queries(trajectory).length)),
    "planner/forcedCalls": sum(generated.map(({ isForced }) => Number(isForced))) / judged.length,
    "planner/generatorTokens": sum(generated.map(({ usage }) => tokensOf(usage))) / judged.length,
    "planner/judgeTokens": mean(judged.map(({ assessment }) => tokensOf(assessment.usage))),
  };
}

function judgeMetrics(assessments: readonly Assessment[]): Partial<MetricRow> {
  const asked = assessments.filter(({ judged }) => judged > 0);
  const read = asked.filter(({ unreadable }) => unreadable === 0);
  const graded = assessments.filter(
    ({ grade, isGradeUnreadable }) => grade !== undefined || isGradeUnreadable,
  );
  return {
    ...(asked.length > 0 && {
      "planner/judgeUnreadable": mean(asked.map(({ unreadable }) => unreadable)),
    }),
    ...(read.length > 0 && {
      "planner/judgeAgreement": mean(read.map(({ score, ruleScore }) => Number(score === ruleScore))),
    }),
    ...(graded.length > 0 && {
      "planner/gradeUnreadable": mean(
        graded.map(({ isGradeUnreadable }) => Number(isGradeUnreadable === true)),
      ),
    }),
  };
}

function tokensOf({ promptTokens, completionTokens }: PolicyUsage): number {
  return promptTokens + completionTokens;
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

function mean(values: readonly number[]): number {
  return sum(values) / Math.max(1, values.length);
}
