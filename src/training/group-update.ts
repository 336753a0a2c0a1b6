/** The update of GRPO: advantages from the rewards of each group, and updates on minibatches. */
import { advantagesByGroup } from "../algorithm/group.ts";
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

/** Updates on minibatches of what the groups left; nothing happens when no group has a signal. */
export async function groupUpdate(
  lesson: Lesson,
  stage: ReinforcementStage & { readonly algorithm: GrpoOptions },
  { step, sampled }: { readonly step: number; readonly sampled: readonly RewardedTrajectory[] },
): Promise<StepUpdate> {
  const { engine, seed } = lesson;
  const { algorithm, optimizer } = stage;
  const groups = advantagesByGroup(sampled, algorithm);
  const data = await policyData(lesson, algorithm, groups.trajectories);
  const loss = policyLoss(algorithm);
  const rate = stageRate(stage, step, lesson.stepsCarried);
  const metrics = new UpdateMetrics({
    loss,
    learningRate: rate,
    kl: algorithm.kl,
    policy: engine.policy().identity,
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
  return { groups, row: (seconds) => metrics.row(seconds) };
}
