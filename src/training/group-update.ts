/** The update of GRPO: advantages from the rewards of each group, and updates on minibatches. */
import type { Datum } from "../algorithm/datum.ts";
import { type AdvantagedTrajectory, advantagesByGroup } from "../algorithm/group.ts";
import { minibatches } from "../algorithm/minibatch.ts";
import { type GrpoOptions, policyLoss } from "../algorithm/options.ts";
import type { ReinforcementStage } from "../config/stage-options.ts";
import { random } from "../shared/random.ts";
import type { Lesson } from "./lesson.ts";
import { policyData } from "./policy-data.ts";
import type { RewardedTrajectory } from "./rollout-metrics.ts";
import { stageRate } from "./stage-switch.ts";
import type { StepUpdate } from "./step-update.ts";
import { UpdateMetrics } from "./update-metrics.ts";

interface GroupSample {
  readonly step: number;
  readonly sampled: readonly RewardedTrajectory[];
  /** Calls of a ranker that the same weights learn from. */
  readonly rankings?: readonly AdvantagedTrajectory[] | undefined;
  /** Whether some of it was sampled with older weights than those of now. */
  readonly isStale?: boolean | undefined;
}

/** Updates on minibatches of what the groups left; nothing happens when no group has a signal. */
export async function groupUpdate(
  lesson: Lesson,
  stage: ReinforcementStage & { readonly algorithm: GrpoOptions },
  { step, sampled, rankings = [], isStale }: GroupSample,
): Promise<StepUpdate> {
  const groups = advantagesByGroup(sampled, stage.algorithm);
  const data = await policyData(lesson, stage.algorithm, groups.trajectories);
  data.push(...(await policyData(lesson, { maskRetrieved: true }, rankings)));
  return { groups, row: await updateOn(lesson, stage, { step, data, isStale }) };
}

/** One update for each minibatch of `data`; returns what makes the metrics, given the seconds it took. */
export async function updateOn(
  { engine, seed, stepsCarried }: Lesson,
  stage: ReinforcementStage & { readonly algorithm: GrpoOptions },
  {
    step,
    data,
    isStale,
  }: { readonly step: number; readonly data: readonly Datum[]; readonly isStale?: boolean | undefined },
): Promise<StepUpdate["row"]> {
  const { algorithm, optimizer } = stage;
  const loss = policyLoss(algorithm);
  const rate = stageRate(stage, step, stepsCarried);
  const metrics = new UpdateMetrics({
    loss,
    learningRate: rate,
    kl: algorithm.kl,
    policy: engine.policy().identity,
    isStale,
  });
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
  return (seconds) => metrics.row(seconds);
}
