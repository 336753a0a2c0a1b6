import { expect, test } from "vitest";
import type { Datum } from "./datum.ts";
import { maxLogprobDifference, policyDiagnostics, referenceKlDivergence } from "./diagnostics.ts";
import type { Loss } from "./loss.ts";

const ppo: Loss = { type: "ppo", clipLow: 0.2, clipHigh: 0.3 };
const ln2 = Math.log(2);
const datum: Datum = {
  inputs: new Int32Array(4),
  targets: new Int32Array(4),
  weights: Float32Array.of(0, 0.1, 0.3, 0.1),
  logprobs: Float32Array.of(0, -2, -2, -2),
  advantages: Float32Array.of(0, 1, 1, -1),
  referenceLogprobs: Float32Array.of(0, -2, -3, -4),
};

test("means are over trained tokens, each counted once", () => {
  // Ratios 2 (clipped: a good token), 1/2 (not: a good token pushed down), 1/2 (clipped: a bad token).
  const logprobs = [[Number.NaN, -2 + ln2, -2 - ln2, -2 - ln2]];
  const report = policyDiagnostics([datum], logprobs, ppo);
  expect(report.tokens).toBe(3);
  expect(report.clipFraction).toBeCloseTo(2 / 3, 12);
  expect(report.ratioMean).toBeCloseTo(1, 12);
  expect(report.ratioMax).toBeCloseTo(2, 12);
  // k3 of the sampling policy: (2 - ln 2 - 1), (1/2 + ln 2 - 1) twice
  expect(report.klDivergence).toBeCloseTo((2 - ln2 - 1 + 2 * (0.5 + ln2 - 1)) / 3, 12);
  expect(report.entropy).toBeCloseTo((6 + ln2) / 3, 12);
});

test("a policy that has not moved has ratio 1, no divergence and nothing clipped", () => {
  const report = policyDiagnostics([datum], [datum.logprobs as Float32Array], ppo);
  expect(report).toEqual({
    tokens: 3,
    clipFraction: 0,
    ratioMean: 1,
    ratioMax: 1,
    klDivergence: 0,
    entropy: 2,
  });
});

test("without trained tokens the report is that of an unmoved policy, not NaN", () => {
  expect(policyDiagnostics([], [], ppo)).toEqual({
    tokens: 0,
    clipFraction: 0,
    ratioMean: 1,
    ratioMax: 1,
    klDivergence: 0,
    entropy: 0,
  });
});

test("sampler and trainer are compared on trained tokens only", () => {
  expect(maxLogprobDifference([datum], [[99, -2.25, -2, -1.5]])).toBe(0.5);
});

test("the divergence from the reference is a masked mean", () => {
  const now = datum.logprobs as Float32Array;
  expect(referenceKlDivergence([datum], [now], "k1")).toBeCloseTo((0 + 1 + 2) / 3, 6);
  const { referenceLogprobs: _, ...without } = datum;
  expect(referenceKlDivergence([without], [now], "k1")).toBe(0);
});
