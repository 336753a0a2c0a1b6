import fc from "fast-check";
import { expect, test } from "vitest";
import { klDerivative, klEstimate } from "./kl.ts";

const p = [0.7, 0.2, 0.1];
const q = [0.4, 0.4, 0.2];
const exact = p.reduce((sum, value, i) => sum + value * Math.log(value / (q[i] as number)), 0);
const logprob = fc.double({ min: -15, max: 0, noNaN: true });

test.each(["k1", "k3"] as const)("the mean of %s over the policy is the divergence", (estimator) => {
  const mean = p.reduce(
    (sum, value, i) => sum + value * klEstimate(estimator, Math.log(value), Math.log(q[i] as number)),
    0,
  );
  expect(mean).toBeCloseTo(exact, 12);
});

test("the expected gradient of k1 is zero, that of k3 is the gradient of KL(q || p)", () => {
  // Moving the logit of token 0 changes log p_i by (i = 0) - p_0; the sampling is not differentiated.
  const gradient = (estimator: "k1" | "k3"): number =>
    p.reduce((sum, value, i) => {
      const slope = klDerivative(estimator, Math.log(value), Math.log(q[i] as number));
      return sum + value * slope * ((i === 0 ? 1 : 0) - (p[0] as number));
    }, 0);
  expect(gradient("k1")).toBeCloseTo(0, 12);
  // Sum over i of (p_i - q_i) (1[i=0] - p_0) = p_0 - q_0, which is d KL(q || p) / d logit 0.
  expect(gradient("k3")).toBeCloseTo(0.3, 12);
});

test("k3 is never negative and zero for equal policies", () => {
  fc.assert(
    fc.property(logprob, logprob, (a, b) => {
      expect(klEstimate("k3", a, b)).toBeGreaterThanOrEqual(0);
    }),
  );
  expect(klEstimate("k3", -1.5, -1.5)).toBe(0);
});

test.each(["k1", "k3"] as const)("the derivative of %s is that of finite differences", (estimator) => {
  fc.assert(
    fc.property(logprob, fc.double({ min: -3, max: 3, noNaN: true }), (current, difference) => {
      const reference = current + difference;
      const h = 1e-5;
      const slope =
        (klEstimate(estimator, current + h, reference) - klEstimate(estimator, current - h, reference)) /
        (2 * h);
      expect(klDerivative(estimator, current, reference)).toBeCloseTo(slope, 6);
    }),
  );
});

test("k3 of a token the policy has all but ruled out is finite and has no gradient", () => {
  expect(Number.isFinite(klEstimate("k3", -800, -1))).toBe(true);
  expect(klDerivative("k3", -800, -1)).toBe(0);
});
