/**
 * One step of a reinforcement stage: rollouts of a group for each question with their rewards (`sample-groups.ts`, or
 * ahead of time `sample-ahead.ts`), and the update of the stage's algorithm (`group-update.ts`, `critic-update.ts`).
 * What the first update sees must be what was sampled: the log-probabilities of both are compared.
 */
import type { AdvantagedTrajectory } from "../algorithm/group.ts";
import type { ReinforcementStage } from "../config/stage-options.ts";
import { assert } from "../errors.ts";
import type { MetricRow } from "../reporting/metric-row.ts";
import { criticUpdate } from "./critic-update.ts";
import { groupUpdate } from "./group-update.ts";
import type { Lesson } from "./lesson.ts";
import { plannerMetrics } from "./planner-metrics.ts";
import { lessonsOfRanker, rankerUpdate, rankingsOf, trainedRanker } from "./ranker-update.ts";
import { rejectionUpdate } from "./rejection-update.ts";
import { type RewardedTrajectory, rolloutMetrics } from "./rollout-metrics.ts";
import type { SampleAhead } from "./sample-ahead.ts";
import { sampleGroups } from "./sample-groups.ts";
import { stalenessMetrics, stalenessOf } from "./staleness.ts";
import type { StepUpdate } from "./step-update.ts";

export interface ReinforcementResult {
  readonly row: MetricRow;
  /** Everything that was sampled, with reward and, where it was trained on, advantage. */
  readonly sampled: readonly (RewardedTrajectory & { readonly advantage: number | undefined })[];
  /** The calls of a ranker, likewise. */
  readonly rankings: readonly (RewardedTrajectory & { readonly advantage: number | undefined })[];
}

/**
 * Trains step `step` (from 0) on what `ahead` has of it, or on what is sampled now. Throws the signal's reason when
 * aborted before the first update, and `EpisodesFailedError`.
 */
export async function reinforcementStep(
  lesson: Lesson,
  stage: ReinforcementStage,
  { step, ahead }: { readonly step: number; readonly ahead?: SampleAhead | undefined },
): Promise<ReinforcementResult> {
  const { now } = lesson;
  const started = now();
  const sample = await (ahead?.take(step) ?? sampleGroups(lesson, stage, { step }));
  const { sampled } = sample;
  const sampledAt = now();
  const agents = sampled.map(({ trajectory }) => trajectory);
  const staleness = stalenessOf(agents, step);
  assert((staleness?.max ?? 0) <= stage.maxStaleness, `weights ${staleness?.max} steps old sampled`);
  const isStale = (staleness?.max ?? 0) > 0;
  const lessons = await lessonsOfRanker(lesson, stage, { step, agents });
  const rankings = trainedRanker(lesson) === "shared" ? lessons?.groups.trajectories : undefined;
  const taught = ahead === undefined ? lesson : { ...lesson, engine: ahead.engine };
  const { groups, row } = await update(taught, stage, { step, sampled, rankings, isStale });
  const updateSeconds = (now() - sampledAt) / 1000;
  const advantages = new Map(groups.trajectories.map(({ trajectory, advantage }) => [trajectory, advantage]));
  const ranked = lessons && (await rankerUpdate(lesson, stage, { step, agents, lessons }));
  return {
    rankings: lessons === undefined ? [] : rankingsOf(lessons),
    sampled: sampled.map((member) => ({ ...member, advantage: advantages.get(member.trajectory) })),
    row: {
      stage: stage.name,
      step: step + 1,
      ...rolloutMetrics(sampled, groups, { rolloutMs: sample.ms, environment: lesson.environment }),
      ...plannerMetrics(agents, lesson.planner),
      ...row(updateSeconds),
      ...ranked,
      ...stalenessMetrics(staleness),
      "group/retried": sample.retried,
      "time/rollout": (sampledAt - started) / 1000,
      "time/update": updateSeconds,
      "time/step": (now() - started) / 1000,
    },
  };
}

/** The update that the stage's algorithm asks for. */
async function update(
  lesson: Lesson,
  stage: ReinforcementStage,
  sample: {
    readonly step: number;
    readonly sampled: readonly RewardedTrajectory[];
    readonly rankings?: readonly AdvantagedTrajectory[] | undefined;
    readonly isStale: boolean;
  },
): Promise<StepUpdate> {
  const { algorithm } = stage;
  if (algorithm.type === "rejectionSampling")
    return await rejectionUpdate(lesson, { ...stage, algorithm }, sample);
  return algorithm.type === "ppo"
    ? await criticUpdate(lesson, { ...stage, algorithm }, sample)
    : await groupUpdate(lesson, { ...stage, algorithm }, sample);
}
