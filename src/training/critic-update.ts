/**
 * The update of PPO: the critic's values before it, advantages and returns from them, then minibatches on which the
 * critic learns and, once its lead is over, the policy too. Both see the same trajectories in each minibatch.
 */
import type { ValueDatum } from "../algorithm/datum.ts";
import { type GroupReport, soundTrajectories } from "../algorithm/group.ts";
import { type Minibatch, minibatches } from "../algorithm/minibatch.ts";
import { criticLoss, type PpoOptions, policyLoss } from "../algorithm/options.ts";
import { meanAdvantage, type PpoData, ppoData } from "../algorithm/ppo.ts";
import { learningRate } from "../algorithm/schedule.ts";
import type { ReinforcementStage } from "../config/stage-options.ts";
import type { Critic } from "../engine/engine.ts";
import { assert } from "../errors.ts";
import type { Trajectory } from "../rollout/trajectory.ts";
import { random } from "../shared/random.ts";
import { CriticMetrics } from "./critic-metrics.ts";
import type { Lesson } from "./lesson.ts";
import { policyData } from "./policy-data.ts";
import type { RewardedTrajectory } from "./rollout-metrics.ts";
import { stageRate } from "./stage-switch.ts";
import type { StepUpdate } from "./step-update.ts";
import { UpdateMetrics } from "./update-metrics.ts";

type PpoStage = ReinforcementStage & { readonly algorithm: PpoOptions };
type Sound = { readonly trajectory: Trajectory; readonly reward: number };

interface CriticSample {
  readonly step: number;
  readonly sampled: readonly RewardedTrajectory[];
  /** Whether some of it was sampled with older weights than those of now. */
  readonly isStale?: boolean | undefined;
}

/** Trains on all trajectories that the world did not fail. */
export async function criticUpdate(
  lesson: Lesson,
  stage: PpoStage,
  { step, sampled, isStale }: CriticSample,
): Promise<StepUpdate> {
  const { critic } = lesson;
  assert(critic, `the stage ${stage.name} has a critic`);
  const sound = soundTrajectories(sampled);
  const data = await estimate(lesson, critic, { stage, sound });
  const row = await learn(lesson, critic, { stage, step, data, isStale });
  return { groups: reportOf(sound, { failed: sampled.length - sound.length, data }), row };
}

async function estimate(
  lesson: Lesson,
  critic: Critic,
  { stage, sound }: { readonly stage: PpoStage; readonly sound: readonly Sound[] },
): Promise<PpoData> {
  const { algorithm } = stage;
  const data = await policyData(
    lesson,
    algorithm,
    sound.map(({ trajectory }) => ({ trajectory, advantage: 0 })),
  );
  const values = await critic.values(data);
  const members = data.map((datum, i) => ({
    datum,
    reward: (sound[i] as Sound).reward,
    values: values[i] as Float32Array,
  }));
  return ppoData(members, algorithm);
}

async function learn(
  lesson: Lesson,
  critic: Critic,
  {
    stage,
    step,
    data,
    isStale,
  }: Pick<CriticSample, "step" | "isStale"> & { readonly stage: PpoStage; readonly data: PpoData },
): Promise<StepUpdate["row"]> {
  const { engine } = lesson;
  const { algorithm, optimizer, steps } = stage;
  const loss = policyLoss(algorithm);
  const rate = stageRate(stage, step, lesson.stepsCarried);
  const criticRate = learningRate(step, { ...algorithm.critic.schedule, totalSteps: steps });
  const metrics = new UpdateMetrics({
    loss,
    learningRate: rate,
    kl: algorithm.kl,
    policy: engine.policy().identity,
    isStale,
  });
  const criticMetrics = new CriticMetrics(data.critic, {
    loss: criticLoss(algorithm),
    learningRate: criticRate,
  });
  const isLead = step < algorithm.critic.leadSteps;
  const cut = <D extends { readonly weights: Float32Array }>(whole: readonly D[]): Minibatch<D>[] =>
    minibatches(whole, {
      size: algorithm.minibatchSize ?? Math.max(1, whole.length),
      epochs: algorithm.epochs,
      lossNormalization: algorithm.lossNormalization,
      // A generator of its own for each cut, so that both draw the same order.
      random: random(lesson.seed, stage.name, "minibatches", step),
    });
  const policyBatches = cut(data.policy);
  for (const [i, lessons] of cut(data.critic).entries()) {
    const batch = policyBatches[i] as (typeof policyBatches)[number];
    const report = isLead ? undefined : await engine.forwardBackward(batch.data, loss);
    if (report) metrics.checkSampler(batch, report);
    // Before the policy's step: the gradient of a shared trunk goes into that step.
    const criticReport = await teach(critic, algorithm, { lessons, isLead });
    if (report) {
      const { gradientNorm } = await engine.step({ ...optimizer, learningRate: rate });
      metrics.add(batch, report, gradientNorm);
    }
    const { gradientNorm } = await critic.step({ ...optimizer, learningRate: criticRate });
    criticMetrics.add(lessons, criticReport, gradientNorm);
  }
  return (seconds) => ({ ...metrics.row(seconds), ...criticMetrics.row() });
}

/** Adds the gradient of a minibatch; the loss that is reported carries no coefficient. */
async function teach(
  critic: Critic,
  algorithm: PpoOptions,
  { lessons, isLead }: { readonly lessons: Minibatch<ValueDatum>; readonly isLead: boolean },
): Promise<{ readonly loss: number; readonly values: readonly Float32Array[] }> {
  const loss = criticLoss(algorithm);
  if (algorithm.critic.trunk === "own") return await critic.forwardBackward(lessons.data, loss);
  const { coefficient } = algorithm.critic;
  const weighted = lessons.data.map((datum) => ({
    ...datum,
    weights: datum.weights.map((weight) => weight * coefficient),
  }));
  const report = await critic.forwardBackward(weighted, loss, isLead ? "head" : "all");
  return { ...report, loss: report.loss / coefficient };
}

function reportOf(
  sound: readonly Sound[],
  { failed, data }: { readonly failed: number; readonly data: PpoData },
): GroupReport {
  return {
    trajectories: sound.map((member, i) => ({
      ...member,
      advantage: meanAdvantage(data.policy[i] as PpoData["policy"][number]),
    })),
    groups: new Set(sound.map(({ trajectory }) => trajectory.group)).size,
    failed,
    broken: 0,
    withoutSignal: 0,
  };
}
