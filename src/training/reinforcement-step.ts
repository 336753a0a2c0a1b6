/**
 * One step of a reinforcement stage: rollouts of a group for each question, rewards, and the update of the stage's
 * algorithm (`group-update.ts`, `critic-update.ts`). What the first update sees must be what was sampled: the
 * log-probabilities of both are compared.
 */
import type { AdvantagedTrajectory } from "../algorithm/group.ts";
import type { ReinforcementStage } from "../config/stage-options.ts";
import { questionKey } from "../corpus/question.ts";
import { isInfrastructureFailure } from "../environment/stop-reason.ts";
import type { MetricRow } from "../reporting/metric-row.ts";
import { reward } from "../reward/reward.ts";
import { runRollouts } from "../rollout/run-rollouts.ts";
import type { Trajectory } from "../rollout/trajectory.ts";
import { criticUpdate } from "./critic-update.ts";
import { freshPolicy } from "./fresh-policy.ts";
import { groupUpdate } from "./group-update.ts";
import type { Lesson } from "./lesson.ts";
import { exploringRanker } from "./opened-ranker.ts";
import { plannerMetrics } from "./planner-metrics.ts";
import { questionsOfStep } from "./question-order.ts";
import { lessonsOfRanker, rankerUpdate, rankingsOf, trainedRanker } from "./ranker-update.ts";
import { rejectionUpdate } from "./rejection-update.ts";
import { type RewardedTrajectory, rolloutMetrics } from "./rollout-metrics.ts";
import type { StepUpdate } from "./step-update.ts";

export interface ReinforcementResult {
  readonly row: MetricRow;
  /** Everything that was sampled, with reward and, where it was trained on, advantage. */
  readonly sampled: readonly (RewardedTrajectory & { readonly advantage: number | undefined })[];
  /** The calls of a ranker, likewise. */
  readonly rankings: readonly (RewardedTrajectory & { readonly advantage: number | undefined })[];
}

/** Trains step `step` (from 0). Throws the signal's reason when aborted before the first update. */
export async function reinforcementStep(
  lesson: Lesson,
  stage: ReinforcementStage,
  step: number,
): Promise<ReinforcementResult> {
  const { now } = lesson;
  const started = now();
  const sampled = await sampleGroups(lesson, stage, step);
  const sampledAt = now();
  const agents = sampled.map(({ trajectory }) => trajectory);
  const lessons = lessonsOfRanker(lesson, stage, { step, agents });
  const rankings = trainedRanker(lesson) === "shared" ? lessons?.groups.trajectories : undefined;
  const { groups, row } = await update(lesson, stage, { step, sampled, rankings });
  const updateSeconds = (now() - sampledAt) / 1000;
  const advantages = new Map(groups.trajectories.map(({ trajectory, advantage }) => [trajectory, advantage]));
  const ranked = lessons && (await rankerUpdate(lesson, stage, { step, agents, lessons }));
  return {
    rankings: lessons === undefined ? [] : rankingsOf(lessons),
    sampled: sampled.map((member) => ({ ...member, advantage: advantages.get(member.trajectory) })),
    row: {
      stage: stage.name,
      step: step + 1,
      ...rolloutMetrics(sampled, groups, { rolloutMs: sampledAt - started, environment: lesson.environment }),
      ...plannerMetrics(
        sampled.map(({ trajectory }) => trajectory),
        lesson.planner,
      ),
      ...row(updateSeconds),
      ...ranked,
      "time/rollout": (sampledAt - started) / 1000,
      "time/update": updateSeconds,
      "time/step": (now() - started) / 1000,
    },
  };
}

/** `groupSize` trajectories of each question of the step, with their rewards. */
async function sampleGroups(
  lesson: Lesson,
  stage: ReinforcementStage,
  step: number,
): Promise<RewardedTrajectory[]> {
  const { engine, data, environment, seed, signal, now } = lesson;
  data.onStep?.(step);
  lesson.assessor?.forget();
  const count = stage.questionsPerStep;
  const questions = questionsOfStep(data.train, { seed, stage: stage.name, step, count });
  const requests = questions.flatMap((question, index) =>
    Array.from({ length: stage.algorithm.groupSize }, (_, sample) => ({
      question,
      // The index keeps a question that is drawn twice in one step in two groups.
      group: `${stage.name}/${step}/${index}/${questionKey(question)}`,
      sample,
      seed,
    })),
  );
  const played = await runRollouts(
    requests,
    {
      policy: freshPolicy(engine),
      retriever: data.retriever,
      ranker: exploringRanker(lesson.ranker?.opened, stage.sampling),
      environment,
      sampling: stage.sampling,
      tokenizer: engine.tokenizer,
      generator: lesson.assessor?.models.generator,
      contextLength: engine.contextLength,
      now,
    },
    { signal },
  );
  signal?.throwIfAborted();
  const trajectories = await judged(played, lesson, stage);
  return trajectories.map((trajectory) => ({ trajectory, reward: rewardOf(trajectory, stage, lesson) }));
}

/** Episodes of a planner with what its reward needs to know of them. */
async function judged(
  played: readonly Trajectory[],
  { assessor, planner, signal }: Lesson,
  { reward: { type } }: ReinforcementStage,
): Promise<readonly Trajectory[]> {
  if (assessor === undefined || type !== "planner") return played;
  return await assessor.assess(played, { withBaselines: planner?.outcome === "gain", signal });
}

function rewardOf(
  trajectory: Trajectory,
  stage: ReinforcementStage,
  { planner }: Lesson,
): number | undefined {
  if (isInfrastructureFailure(trajectory.stopReason)) return undefined;
  return reward(trajectory, stage.reward, planner).value;
}

/** The update that the stage's algorithm asks for. */
async function update(
  lesson: Lesson,
  stage: ReinforcementStage,
  sample: {
    readonly step: number;
    readonly sampled: readonly RewardedTrajectory[];
    readonly rankings?: readonly AdvantagedTrajectory[] | undefined;
  },
): Promise<StepUpdate> {
  const { algorithm } = stage;
  if (algorithm.type === "rejectionSampling")
    return await rejectionUpdate(lesson, { ...stage, algorithm }, sample);
  return algorithm.type === "ppo"
    ? await criticUpdate(lesson, { ...stage, algorithm }, sample)
    : await groupUpdate(lesson, { ...stage, algorithm }, sample);
}
