import { expect, test } from "vitest";
import {
  algorithmOptionsSchema,
  criticLoss,
  type GrpoOptions,
  type PpoOptions,
  policyLoss,
} from "./options.ts";

test("nothing set means masked GRPO without a KL term", () => {
  const options = algorithmOptionsSchema.parse({}) as GrpoOptions;
  expect(options).toEqual({
    type: "grpo",
    groupSize: 8,
    advantage: { normalize: "std" },
    clipLow: 0.2,
    clipHigh: 0.28,
    epochs: 1,
    maskRetrieved: true,
    lossNormalization: "token",
    rejectGroupsWithoutSignal: true,
  });
  expect(policyLoss(options)).toEqual({ type: "ppo", clipLow: 0.2, clipHigh: 0.28 });
});

test("a KL term reaches the loss", () => {
  const options = algorithmOptionsSchema.parse({ kl: { coefficient: 0.001 } }) as GrpoOptions;
  expect(policyLoss(options)).toMatchObject({ kl: { estimator: "k3", coefficient: 0.001 } });
});

test("PPO needs only its critic's learning rate", () => {
  const critic = { schedule: { learningRate: 1e-5 } };
  const options = algorithmOptionsSchema.parse({ type: "ppo", critic }) as PpoOptions;
  expect(options).toEqual({
    type: "ppo",
    groupSize: 1,
    gae: { gamma: 1, lambda: 1, observations: "skip" },
    whiten: true,
    critic: {
      trunk: "own",
      schedule: { learningRate: 1e-5, warmupSteps: 0, decay: { type: "constant" } },
      clip: 0.5,
      leadSteps: 0,
    },
    clipLow: 0.2,
    clipHigh: 0.28,
    epochs: 1,
    maskRetrieved: true,
    lossNormalization: "token",
  });
  expect(criticLoss(options)).toEqual({ type: "value", clip: 0.5 });
});

test("the KL term of PPO is a price in its rewards, not a part of its loss", () => {
  const critic = { schedule: { learningRate: 1e-5 } };
  const options = algorithmOptionsSchema.parse({
    type: "ppo",
    critic,
    kl: { coefficient: 0.001 },
  }) as PpoOptions;
  expect(options.kl).toEqual({ estimator: "k1", coefficient: 0.001 });
  expect(policyLoss(options)).toEqual({ type: "ppo", clipLow: 0.2, clipHigh: 0.28 });
});

const critic = { schedule: { learningRate: 1 } };
test.each([
  { groupSize: 0 },
  { type: "ppo" },
  { type: "ppo", critic: { ...critic, coefficient: 1 } },
  { type: "ppo", critic, advantage: { normalize: "none" } },
  { type: "ppo", critic, gae: { lambda: 1.5 } },
  { critic },
  { clipLow: 1 },
  { kl: { coefficient: 0 } },
  { lossNormalization: "constant" },
  { groupsize: 4 },
])("%j is refused", (options) => {
  expect(algorithmOptionsSchema.safeParse(options).success).toBe(false);
});
