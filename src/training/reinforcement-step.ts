/**
 * One step of a reinforcement stage: rollouts of a group for each question, rewards, advantages, and updates on
 * minibatches. What the first update sees must be what was sampled: the log-probabilities of both are compared.
 */
import { policyDatum, trainOnObservations } from "../algorithm/batch.ts";
import type { Datum } from "../algorithm/datum.ts";
import { advantagesByGroup, type GroupReport } from "../algorithm/group.ts";
import { minibatches } from "../algorithm/minibatch.ts";
import { policyLoss } from "../algorithm/options.ts";
import { learningRate } from "../algorithm/schedule.ts";
import type { ReinforcementStage } from "../config/stage-options.ts";
import { questionKey } from "../corpus/question.ts";
import { isInfrastructureFailure } from "../environment/stop-reason.ts";
import type { MetricRow } from "../reporting/metric-row.ts";
import { reward } from "../reward/reward.ts";
import { runRollouts } from "../rollout/run-rollouts.ts";
import type { Trajectory } from "../rollout/trajectory.ts";
import { random } from "../shared/random.ts";
import type { Lesson } from "./lesson.ts";
import { questionsOfStep } from "./question-order.ts";
import { type RewardedTrajectory, rolloutMetrics } from "./rollout-metrics.ts";
import { UpdateMetrics } from "./update-metrics.ts";

export interface ReinforcementResult {
  readonly row: MetricRow;
  /** Everything that was sampled, with reward and, where it was trained on, advantage. */
  readonly sampled: readonly (RewardedTrajectory & { readonly advantage: number | undefined })[];
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
  const groups = advantagesByGroup(sampled, stage.algorithm);
  const metrics = await update(lesson, stage, { step, groups });
  const updateSeconds = (now() - sampledAt) / 1000;
  const advantages = new Map(groups.trajectories.map(({ trajectory, advantage }) => [trajectory, advantage]));
  return {
    sampled: sampled.map((member) => ({ ...member, advantage: advantages.get(member.trajectory) })),
    row: {
      stage: stage.name,
      step: step + 1,
      ...rolloutMetrics(sampled, groups, { rolloutMs: sampledAt - started, environment: lesson.environment }),
      ...metrics.row(updateSeconds),
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
  const trajectories = await runRollouts(
    requests,
    {
      policy: engine.policy(),
      retriever: data.retriever,
      environment,
      sampling: stage.sampling,
      tokenizer: engine.tokenizer,
      contextLength: engine.contextLength,
      now,
    },
    { signal },
  );
  signal?.throwIfAborted();
  return trajectories.map((trajectory) => ({ trajectory, reward: rewardOf(trajectory, stage) }));
}

function rewardOf(trajectory: Trajectory, stage: ReinforcementStage): number | undefined {
  if (isInfrastructureFailure(trajectory.stopReason)) return undefined;
  return reward(trajectory, stage.reward).value;
}

/** Updates on minibatches of what the groups left; nothing happens when no group has a signal. */
async function update(
  lesson: Lesson,
  stage: ReinforcementStage,
  { step, groups }: { readonly step: number; readonly groups: GroupReport },
): Promise<UpdateMetrics> {
  const { engine, seed } = lesson;
  const { algorithm, schedule, optimizer } = stage;
  const loss = policyLoss(algorithm);
  const data = await dataOf(lesson, stage, groups);
  const rate = learningRate(step, { ...schedule, totalSteps: stage.steps });
  const metrics = new UpdateMetrics({ loss, learningRate: rate, kl: algorithm.kl });
  const batches = minibatches(data, {
    size: algorithm.minibatchSize ?? Math.max(1, data.length),
    epochs: algorithm.epochs,
    lossNormalization: algorithm.lossNormalization,
    random: random(seed, stage.name, "minibatches", step),
  });
  for (const batch of batches) {
    const report = await engine.forwardBackward(batch.data, loss);
    metrics.checkSampler(batch, report);
    const { gradientNorm } = await engine.step({ ...optimizer, learningRate: rate });
    metrics.add(batch, report, gradientNorm);
  }
  return metrics;
}

async function dataOf(lesson: Lesson, stage: ReinforcementStage, groups: GroupReport): Promise<Datum[]> {
  const { engine, reference } = lesson;
  let data = groups.trajectories.map(({ trajectory, advantage }) => policyDatum(trajectory, advantage));
  if (!stage.algorithm.maskRetrieved) {
    const logprobs = await engine.logprobs(data);
    data = data.map((datum, index) =>
      trainOnObservations(
        datum,
        (groups.trajectories[index] as { trajectory: Trajectory }).trajectory,
        logprobs[index] as Float32Array,
      ),
    );
  }
  if (!reference) return data;
  const logprobs = await reference.logprobs(data);
  return data.map((datum, index) => ({ ...datum, referenceLogprobs: logprobs[index] as Float32Array }));
}
