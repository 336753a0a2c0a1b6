import { expect, test } from "vitest";
import { algorithmOptionsSchema, policyLoss } from "./options.ts";

test("nothing set means masked GRPO without a KL term", () => {
  const options = algorithmOptionsSchema.parse({});
  expect(options).toEqual({
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
  const options = algorithmOptionsSchema.parse({ kl: { coefficient: 0.001 } });
  expect(policyLoss(options)).toMatchObject({ kl: { estimator: "k3", coefficient: 0.001 } });
});

test.each([
  { groupSize: 0 },
  { clipLow: 1 },
  { kl: { coefficient: 0 } },
  { lossNormalization: "constant" },
  { groupsize: 4 },
])("%j is refused", (options) => {
  expect(algorithmOptionsSchema.safeParse(options).success).toBe(false);
});
