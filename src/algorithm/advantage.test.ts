import fc from "fast-check";
import { expect, test } from "vitest";
import { groupAdvantages, hasSignal } from "./advantage.ts";

const rewardGroups = fc.array(fc.double({ min: -10, max: 10, noNaN: true }), { minLength: 2, maxLength: 16 });

test.each([
  // mean 0.5, unbiased std sqrt(1/3)
  { rewards: [1, 0, 1, 0], normalize: "std" as const, expected: [0.866024, -0.866024, 0.866024, -0.866024] },
  // mean 0.25, unbiased std 0.5
  { rewards: [1, 0, 0, 0], normalize: "std" as const, expected: [1.499997, -0.499999, -0.499999, -0.499999] },
  { rewards: [1, 0, 0, 0], normalize: "none" as const, expected: [0.75, -0.25, -0.25, -0.25] },
  { rewards: [0.2, 1], normalize: "none" as const, expected: [-0.4, 0.4] },
])("advantages of $rewards with normalize $normalize", ({ rewards, normalize, expected }) => {
  const advantages = groupAdvantages(rewards, { normalize });
  for (const [i, value] of expected.entries()) expect(advantages[i]).toBeCloseTo(value, 6);
});

test("a group whose rewards are all equal has exactly zero advantages, whatever the rounding of its mean", () => {
  expect(groupAdvantages([0.1, 0.1, 0.1], { normalize: "std" })).toEqual([0, 0, 0]);
  expect(groupAdvantages([0.1, 0.1, 0.1], { normalize: "none" })).toEqual([0, 0, 0]);
});

test("a group of one has no baseline: mean 0 and std 1", () => {
  expect(groupAdvantages([1], { normalize: "std" })[0]).toBe(1 / (1 + 1e-6));
  expect(groupAdvantages([0.3], { normalize: "none" })).toEqual([0.3]);
  expect(groupAdvantages([0], { normalize: "std" })).toEqual([0]);
});

test("a group has signal when rewards differ or a lone reward is not zero", () => {
  expect([[1, 0], [1, 1], [1], [0], []].map(hasSignal)).toEqual([true, false, true, false, false]);
});

test("a reward that is not finite is a bug of the reward", () => {
  expect(() => groupAdvantages([1, Number.NaN], { normalize: "std" })).toThrow("a reward is finite, not NaN");
});

test("advantages of a group sum to zero and keep the order of the rewards", () => {
  fc.assert(
    fc.property(rewardGroups, fc.constantFrom("std" as const, "none" as const), (rewards, normalize) => {
      const advantages = groupAdvantages(rewards, { normalize });
      expect(Math.abs(advantages.reduce((sum, value) => sum + value, 0))).toBeLessThan(1e-6);
      const best = rewards.indexOf(Math.max(...rewards));
      expect(advantages[best]).toBe(Math.max(...advantages));
    }),
  );
});

test("the order of a group does not matter", () => {
  fc.assert(
    fc.property(rewardGroups, (rewards) => {
      const forward = groupAdvantages(rewards, { normalize: "std" });
      const backward = groupAdvantages([...rewards].reverse(), { normalize: "std" }).reverse();
      for (const [i, value] of forward.entries()) expect(backward[i]).toBeCloseTo(value, 6);
    }),
  );
});
