import { describe, expect, test } from "vitest";
import { makeTrajectory } from "../../test/make-trajectory.ts";
import { policyDatum } from "./batch.ts";
import { meanAdvantage, ppoData, type ValuedDatum } from "./ppo.ts";

// Targets of the trajectory: prompt, prompt, policy, policy, environment, environment, policy, policy; sampled with
// log-probabilities -0.5, -1 in each turn.
const datum = policyDatum(makeTrajectory(), 0);
const values = Float32Array.of(9, 9, 0.5, 0.25, 0.75, 0.5, 0.25, 0.5);
const member: ValuedDatum = { datum, reward: 1, values };
const plain = { gae: { gamma: 1, lambda: 1, observations: "skip" }, whiten: false } as const;

describe("ppoData", () => {
  test("with gamma and lambda 1 an advantage is the outcome less the value", () => {
    const { policy, critic } = ppoData([member], plain);
    expect([...(policy[0]?.advantages ?? [])]).toEqual([0, 0, 0.5, 0.75, 0, 0, 0.75, 0.5]);
    expect(policy[0]).toMatchObject({ weights: datum.weights, logprobs: datum.logprobs });
    expect(critic).toEqual([
      {
        inputs: datum.inputs,
        weights: Float32Array.of(0, 0, 1, 1, 0, 0, 1, 1),
        values,
        returns: Float32Array.of(0, 0, 1, 1, 0, 0, 1, 1),
      },
    ]);
  });

  test("with observations as states the critic learns them too, the policy never", () => {
    const gae = { ...plain.gae, observations: "states" } as const;
    const { policy, critic } = ppoData([member], { ...plain, gae });
    expect([...(policy[0]?.advantages ?? [])]).toEqual([0, 0, 0.5, 0.75, 0, 0, 0.75, 0.5]);
    expect([...(policy[0]?.weights ?? [])]).toEqual([0, 0, 1, 1, 0, 0, 1, 1]);
    expect([...(critic[0]?.weights ?? [])]).toEqual([0, 0, 1, 1, 1, 1, 1, 1]);
    expect([...(critic[0]?.returns ?? [])]).toEqual([0, 0, 1, 1, 1, 1, 1, 1]);
  });

  test("divergence from the reference is paid for at each action and in every return before it", () => {
    const referenceLogprobs = Float32Array.of(9, 9, -0.75, -1, 9, 9, -0.25, -1.5);
    const { critic } = ppoData([{ ...member, datum: { ...datum, referenceLogprobs } }], {
      ...plain,
      kl: { estimator: "k1", coefficient: 0.5 },
    });
    // Prices: 0.125, 0, -0.125, 0.25.
    expect([...(critic[0]?.returns ?? [])]).toEqual([0, 0, 0.75, 0.875, 0, 0, 0.875, 0.75]);
  });

  test("whitening goes over the actions of all trajectories and leaves the returns alone", () => {
    const lost = { ...member, reward: 0 };
    const { policy, critic } = ppoData([member, lost], { ...plain, whiten: true });
    const trained = policy.flatMap(({ advantages, weights }) =>
      [...(advantages ?? [])].filter((_, t) => weights[t] !== 0),
    );
    expect(trained.reduce((sum, value) => sum + value, 0)).toBeCloseTo(0, 5);
    expect(trained.reduce((sum, value) => sum + value ** 2, 0) / 7).toBeCloseTo(1, 5);
    expect(policy[0]?.advantages?.[4]).toBe(0);
    expect([...(critic[1]?.returns ?? [])]).toEqual([0, 0, 0, 0, 0, 0, 0, 0]);
  });

  test("a KL penalty without the reference's log-probabilities is a bug", () => {
    const kl = { estimator: "k1", coefficient: 0.5 } as const;
    expect(() => ppoData([member], { ...plain, kl })).toThrow("reference's logprobs");
  });
});

test("meanAdvantage is over actions", () => {
  const advantages = Float32Array.of(0, 0, 1, 2, 0, 0, 3, 4);
  expect(meanAdvantage({ ...datum, advantages })).toBe(2.5);
  expect(meanAdvantage({ ...datum, weights: new Float32Array(8), advantages })).toBe(0);
});
