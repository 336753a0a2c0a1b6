/** The update of rejection sampling: cross-entropy on the trajectories that were kept, minibatch by minibatch. */
import { demonstrationDatum } from "../algorithm/batch.ts";
import { minibatches } from "../algorithm/minibatch.ts";
import type { RejectionOptions } from "../algorithm/options.ts";
import { keptTrajectories } from "../algorithm/rejection.ts";
import type { ReinforcementStage } from "../config/stage-options.ts";
import { random } from "../shared/random.ts";
import type { Lesson } from "./lesson.ts";
import type { RewardedTrajectory } from "./rollout-metrics.ts";
import { stageRate } from "./stage-switch.ts";
import type { StepUpdate } from "./step-update.ts";
import { paddingShare } from "./update-metrics.ts";

/** One round: learns what the policy wrote in kept trajectories, never what it read. Nothing kept, nothing changes. */
export async function rejectionUpdate(
  { engine, seed, stepsCarried }: Lesson,
  stage: ReinforcementStage & { readonly algorithm: RejectionOptions },
  { step, sampled }: { readonly step: number; readonly sampled: readonly RewardedTrajectory[] },
): Promise<StepUpdate> {
  const { algorithm, optimizer } = stage;
  const groups = keptTrajectories(sampled, algorithm);
  const data = groups.trajectories.map(({ trajectory }) =>
    demonstrationDatum(trajectory, { contextTokenWeight: 0 }),
  );
  const batches = minibatches(data, {
    size: algorithm.minibatchSize ?? Math.max(1, data.length),
    epochs: algorithm.epochs,
    lossNormalization: "token",
    random: random(seed, stage.name, "minibatches", step),
  });
  const rate = stageRate(stage, step, stepsCarried);
  const sums = { loss: 0, norm: 0, tokens: 0, trained: 0, padded: 0 };
  for (const batch of batches) {
    const report = await engine.forwardBackward(batch.data, { type: "crossEntropy" });
    const { gradientNorm } = await engine.step({ ...optimizer, learningRate: rate });
    sums.loss += report.loss;
    sums.norm += gradientNorm;
    sums.tokens += batch.tokens;
    sums.trained += batch.trainedTokens;
    sums.padded += report.paddedTokens;
  }
  const count = batches.length;
  return {
    groups,
    row: (seconds) => ({
      "demonstration/count": data.length,
      "demonstration/dropped": sampled.length - data.length,
      "optimizer/updates": count,
      "optimizer/learningRate": rate,
      "loss/tokens": sums.trained,
      ...(count > 0 && {
        "loss/value": sums.loss / count,
        "gradient/norm": sums.norm / count,
        "loss/padding": paddingShare(sums.tokens, sums.padded),
        "rate/tokens": sums.tokens / seconds,
      }),
    }),
  };
}
