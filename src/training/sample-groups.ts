/**
 * The trajectories of one step: a group for each question, played, judged and rewarded. An episode that the world failed
 * is played again a few times; then it stays as a failure, which has no reward and is never trained on. Every request
 * ends as exactly one trajectory.
 */
import type { ReinforcementStage } from "../config/stage-options.ts";
import { questionKey } from "../corpus/question.ts";
import { isInfrastructureFailure } from "../environment/stop-reason.ts";
import { TrainingError } from "../errors.ts";
import { reward } from "../reward/reward.ts";
import type { Policy } from "../rollout/policy.ts";
import type { RolloutRequest } from "../rollout/rollout.ts";
import { runRollouts } from "../rollout/run-rollouts.ts";
import type { Trajectory } from "../rollout/trajectory.ts";
import type { Limiter } from "../shared/concurrency.ts";
import { freshPolicy } from "./fresh-policy.ts";
import type { Lesson } from "./lesson.ts";
import { exploringRanker } from "./opened-ranker.ts";
import { questionsOfStep } from "./question-order.ts";
import type { RewardedTrajectory } from "./rollout-metrics.ts";

/** What sampling works with; what an update needs beside it may be another by then. */
export type SamplingLesson = Omit<Lesson, "critic" | "reference">;

export interface StepSample {
  /** (questionsPerStep × groupSize), group after group. */
  readonly sampled: readonly RewardedTrajectory[];
  /** Failures after which an episode was played again. */
  readonly retried: number;
  /** Milliseconds from the first request to the last reward. */
  readonly ms: number;
}

export interface SampleSetting {
  /** Counted from 0. */
  readonly step: number;
  /** Bounds the episodes of several steps together; absent: `maxInFlight` of the stage bounds those of this one. */
  readonly limiter?: Limiter | undefined;
  /** The policy while weights change; absent: that of the weights of now, which stay. */
  readonly policy?: Policy | undefined;
}

/** Nothing is left of a step: whatever failed must be mended before training goes on. The weights are those of before the step. */
export class EpisodesFailedError extends TrainingError {}

/** Samples step `step`. Throws the signal's reason when aborted, and `EpisodesFailedError` when the world failed every episode. */
export async function sampleGroups(
  lesson: SamplingLesson,
  stage: ReinforcementStage,
  { step, limiter, policy }: SampleSetting,
): Promise<StepSample> {
  const { engine, data, environment, signal, now } = lesson;
  const started = now();
  data.onStep?.(step);
  lesson.assessor?.forget();
  let retried = 0;
  const played = await runRollouts(
    requestsOfStep(lesson, stage, step),
    {
      policy: policy ?? freshPolicy(engine),
      retriever: data.retriever,
      ranker: exploringRanker(lesson.ranker?.opened, stage.sampling),
      environment,
      sampling: stage.sampling,
      tokenizer: engine.tokenizer,
      generator: lesson.assessor?.models.generator,
      contextLength: engine.contextLength,
      now,
    },
    {
      ...(limiter === undefined ? { concurrency: stage.maxInFlight } : { limiter }),
      retries: stage.episodeRetries,
      onRetry: () => retried++,
      signal,
    },
  );
  signal?.throwIfAborted();
  const trajectories = await judged(played, lesson, stage);
  requireSound(trajectories, stage.name);
  const sampled = trajectories.map((trajectory) => ({
    trajectory,
    reward: rewardOf(trajectory, stage, lesson),
  }));
  return { sampled, retried, ms: now() - started };
}

function requireSound(trajectories: readonly Trajectory[], stage: string): void {
  if (trajectories.some(({ stopReason }) => !isInfrastructureFailure(stopReason))) return;
  const [first] = trajectories;
  throw new EpisodesFailedError(
    `all ${trajectories.length} episodes of a step of ${stage} failed, the first with: ${first?.failure ?? first?.stopReason}; see that retriever and policy answer, then go on with forager train --resume`,
  );
}

/** `groupSize` episodes of each question of the step. */
function requestsOfStep(
  { data, seed }: SamplingLesson,
  stage: ReinforcementStage,
  step: number,
): RolloutRequest[] {
  const count = stage.questionsPerStep;
  const questions = questionsOfStep(data.train, { seed, stage: stage.name, step, count });
  return questions.flatMap((question, index) =>
    Array.from({ length: stage.algorithm.groupSize }, (_, sample) => ({
      question,
      // The index keeps a question that is drawn twice in one step in two groups.
      group: `${stage.name}/${step}/${index}/${questionKey(question)}`,
      sample,
      seed,
    })),
  );
}

/** Episodes of a planner with what its reward needs to know of them. */
async function judged(
  played: readonly Trajectory[],
  { assessor, planner, signal }: SamplingLesson,
  { reward: { type } }: ReinforcementStage,
): Promise<readonly Trajectory[]> {
  if (assessor === undefined || type !== "planner") return played;
  return await assessor.assess(played, { withBaselines: planner?.outcome === "gain", signal });
}

function rewardOf(
  trajectory: Trajectory,
  stage: ReinforcementStage,
  { planner }: SamplingLesson,
): number | undefined {
  if (isInfrastructureFailure(trajectory.stopReason)) return undefined;
  return reward(trajectory, stage.reward, planner).value;
}
