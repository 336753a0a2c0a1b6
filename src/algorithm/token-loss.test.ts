import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Datum, ValueDatum } from "./datum.ts";
import type { Loss, ValueLoss } from "./loss.ts";
import { datumLoss, type TokenInput, tokenLoss, valueDatumLoss, valueTokenLoss } from "./token-loss.ts";

const ppo: Loss = { type: "ppo", clipLow: 0.2, clipHigh: 0.3 };
const token: TokenInput = { weight: 1, logprob: -1, sampledLogprob: -1, advantage: 1, referenceLogprob: -1 };
const at = (ratio: number, advantage: number): TokenInput => ({
  ...token,
  logprob: token.sampledLogprob + Math.log(ratio),
  advantage,
});

describe("hand-worked tokens", () => {
  test.each<{ name: string; loss: Loss; input: TokenInput; expected: [loss: number, derivative: number] }>([
    {
      name: "cross-entropy",
      loss: { type: "crossEntropy" },
      input: { ...token, weight: 0.5, logprob: -2 },
      expected: [1, -0.5],
    },
    {
      name: "importance sampling",
      loss: { type: "importanceSampling" },
      input: at(2, 3),
      expected: [-6, -6],
    },
    { name: "ppo before any update", loss: ppo, input: at(1, 2), expected: [-2, -2] },
    { name: "ppo inside the range", loss: ppo, input: at(1.25, 2), expected: [-2.5, -2.5] },
    { name: "ppo, good token already pushed up enough", loss: ppo, input: at(1.5, 2), expected: [-2.6, 0] },
    { name: "ppo, good token that was pushed down", loss: ppo, input: at(0.5, 2), expected: [-1, -1] },
    { name: "ppo, bad token already pushed down enough", loss: ppo, input: at(0.5, -2), expected: [1.6, 0] },
    { name: "ppo, bad token that was pushed up", loss: ppo, input: at(1.5, -2), expected: [3, 3] },
    { name: "ppo, no advantage", loss: ppo, input: at(1.5, 0), expected: [0, 0] },
    {
      name: "k1 adds its value and a constant slope",
      loss: { ...ppo, kl: { estimator: "k1", coefficient: 0.1 } },
      input: { ...token, advantage: 0, referenceLogprob: -3 },
      expected: [0.2, 0.1],
    },
    {
      name: "k3 pulls down a token above its reference",
      loss: { ...ppo, kl: { estimator: "k3", coefficient: 0.1 } },
      input: { ...token, advantage: 0, referenceLogprob: -1 - Math.log(2) },
      expected: [0.1 * (0.5 + Math.log(2) - 1), 0.05],
    },
    {
      name: "the weight scales everything, the KL term too",
      loss: { ...ppo, kl: { estimator: "k1", coefficient: 0.1 } },
      input: { ...token, weight: 0.5, referenceLogprob: -3 },
      expected: [0.5 * (-1 + 0.2), 0.5 * (-1 + 0.1)],
    },
  ])("$name", ({ loss, input, expected }) => {
    const { loss: value, derivative } = tokenLoss(loss, input);
    expect(value).toBeCloseTo(expected[0], 10);
    expect(derivative).toBeCloseTo(expected[1], 10);
  });
});

test("the derivative is that of finite differences, away from the corners of the clip", () => {
  const losses = fc.constantFrom<Loss>(
    { type: "crossEntropy" },
    { type: "importanceSampling" },
    ppo,
    { ...ppo, kl: { estimator: "k1", coefficient: 0.5 } },
    { ...ppo, kl: { estimator: "k3", coefficient: 0.5 } },
  );
  const value = (min: number, max: number) => fc.double({ min, max, noNaN: true });
  fc.assert(
    fc.property(losses, value(-1, 1), value(-3, 3), value(-1, 1), (loss, logRatio, advantage, difference) => {
      const h = 1e-5;
      const corners = [Math.log(0.8), Math.log(1.3)];
      fc.pre(corners.every((corner) => Math.abs(logRatio - corner) > 2 * h));
      const input = { ...token, logprob: -1 + logRatio, advantage, referenceLogprob: -1 + difference };
      const loss1 = tokenLoss(loss, { ...input, logprob: input.logprob - h }).loss;
      const loss2 = tokenLoss(loss, { ...input, logprob: input.logprob + h }).loss;
      expect(tokenLoss(loss, input).derivative).toBeCloseTo((loss2 - loss1) / (2 * h), 6);
    }),
  );
});

test("a token whose probability exploded has a finite loss and no gradient", () => {
  const input = { ...token, logprob: 0, sampledLogprob: -200, advantage: -1 };
  for (const loss of [ppo, { type: "importanceSampling" } as const]) {
    expect(Number.isFinite(tokenLoss(loss, input).loss)).toBe(true);
    expect(tokenLoss(loss, input).derivative).toBeCloseTo(0, 12);
  }
});

describe("datumLoss", () => {
  const datum: Datum = {
    inputs: Int32Array.of(1, 2, 3),
    targets: Int32Array.of(2, 3, 4),
    weights: Float32Array.of(0, 0.5, 0.5),
    logprobs: Float32Array.of(0, -1, -2),
    advantages: Float32Array.of(7, 1, -1),
  };

  test("sums the tokens with weight; the others have exactly no loss and no derivative", () => {
    const { loss, derivatives } = datumLoss(ppo, datum, [Number.NaN, -1, -2]);
    expect(loss).toBe(-0.5 + 0.5);
    expect([...derivatives]).toEqual([0, -0.5, 0.5]);
  });

  test("data that lack what the loss reads are a bug", () => {
    const { logprobs: _, ...incomplete } = datum;
    expect(() => datumLoss(ppo, incomplete, [0, 0, 0])).toThrow("sampled logprobs");
    const withKl: Loss = { ...ppo, kl: { estimator: "k3", coefficient: 1 } };
    expect(() => datumLoss(withKl, datum, [0, 0, 0])).toThrow("referenceLogprobs");
  });
});

describe("the loss of a critic", () => {
  const loss: ValueLoss = { type: "value", clip: 0.5 };
  test.each([
    { name: "before any update", value: 0.25, target: 1, expected: [0.28125, -0.75] },
    { name: "within the range", value: 0.5, target: 1, expected: [0.125, -0.5] },
    { name: "moved far enough towards the return", value: 1, target: 2, expected: [0.78125, 0] },
    { name: "moved far, but away from the return", value: 1, target: 0, expected: [0.5, 1] },
    { name: "moved past the return", value: 1, target: 0.5, expected: [0.125, 0.5] },
    { name: "moved down far enough", value: -1, target: -2, expected: [1.53125, 0] },
    { name: "right", value: 0.5, target: 0.5, expected: [0, 0] },
  ])("$name, from an old value of 1/4", ({ value, target, expected }) => {
    const token = valueTokenLoss(loss, { weight: 1, value, oldValue: 0.25, target });
    expect([token.loss, token.derivative]).toEqual(expected);
  });

  test("the derivative is that of finite differences, away from the corners", () => {
    const number = (min: number, max: number) => fc.double({ min, max, noNaN: true });
    fc.assert(
      fc.property(
        number(-2, 2),
        number(-2, 2),
        number(-2, 2),
        number(0, 2),
        (value, oldValue, target, weight) => {
          const h = 1e-5;
          const at = (moved: number) => valueTokenLoss(loss, { weight, value: moved, oldValue, target });
          // A corner lies where the clipped error becomes the larger one.
          fc.pre((at(value - h).derivative === 0) === (at(value + h).derivative === 0));
          expect(at(value).derivative).toBeCloseTo((at(value + h).loss - at(value - h).loss) / (2 * h), 5);
        },
      ),
    );
  });

  test("a datum is the sum of its weighted values; the others have exactly no part", () => {
    const datum: ValueDatum = {
      inputs: Int32Array.of(1, 2, 3),
      weights: Float32Array.of(0, 0.5, 2),
      values: Float32Array.of(Number.NaN, 0, 0.25),
      returns: Float32Array.of(Number.NaN, 1, 0),
    };
    const { loss: sum, derivatives } = valueDatumLoss(loss, datum, [Number.NaN, 0, 0.25]);
    expect(sum).toBe(0.5 * 0.5 + 2 * 0.03125);
    expect([...derivatives]).toEqual([0, -0.5, 0.5]);
  });
});
