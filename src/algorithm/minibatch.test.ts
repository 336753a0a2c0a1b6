import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { random } from "../shared/random.ts";
import type { Datum } from "./datum.ts";
import { type LossNormalization, minibatches, normalizeWeights } from "./minibatch.ts";

function datum(...weights: number[]): Datum {
  const tokens = new Int32Array(weights.length);
  return { inputs: tokens, targets: tokens, weights: Float32Array.from(weights) };
}

const weightsOf = (data: readonly Datum[]): number[][] => data.map(({ weights }) => [...weights]);

describe("normalizeWeights", () => {
  const data = [datum(0, 1, 1, 1), datum(0, 1)];
  test.each<{ normalization: LossNormalization; expected: number[][] }>([
    {
      normalization: "token",
      expected: [
        [0, 0.25, 0.25, 0.25],
        [0, 0.25],
      ],
    },
    {
      normalization: "sequence",
      expected: [
        [0, 1 / 6, 1 / 6, 1 / 6],
        [0, 1 / 2],
      ],
    },
    {
      normalization: { constantTokens: 5 },
      expected: [
        [0, 0.1, 0.1, 0.1],
        [0, 0.1],
      ],
    },
  ])("$normalization", ({ normalization, expected }) => {
    expect(weightsOf(normalizeWeights(data, normalization))).toEqual(
      expected.map((weights) => [...Float32Array.from(weights)]),
    );
  });

  test("fractional weights are shares of the total weight", () => {
    expect(weightsOf(normalizeWeights([datum(0.5, 1), datum(0.5)], "token"))).toEqual([[0.25, 0.5], [0.25]]);
  });

  test("a sequence without weight stays zero instead of dividing by zero", () => {
    expect(weightsOf(normalizeWeights([datum(0, 0), datum(1)], "sequence"))).toEqual([[0, 0], [0.5]]);
  });
});

describe("minibatches", () => {
  const options = { size: 4, epochs: 2, lossNormalization: "token" } as const;

  test("every epoch goes through all data once, in even minibatches", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 30 }), fc.integer({ min: 1, max: 12 }), (n, size) => {
        const data = Array.from({ length: n }, () => datum(0, 1));
        const result = minibatches(data, { ...options, size, random: random(1) });
        for (const epoch of [0, 1]) {
          const sizes = result.filter((batch) => batch.epoch === epoch).map((batch) => batch.data.length);
          expect(sizes.length).toBe(Math.ceil(n / size));
          expect(sizes.reduce((sum, value) => sum + value)).toBe(n);
          expect(Math.max(...sizes) - Math.min(...sizes)).toBeLessThanOrEqual(1);
        }
      }),
    );
  });

  test("data are shuffled anew for each epoch, the same way for the same seed", () => {
    const data = Array.from({ length: 12 }, (_, i) => ({ ...datum(1), inputs: Int32Array.of(i) }));
    const order = (seed: number) =>
      minibatches(data, { ...options, size: 12, random: random(seed) }).map((batch) =>
        batch.data.map(({ inputs }) => inputs[0]),
      );
    const [first, second] = order(3);
    expect(first).not.toEqual(second);
    expect([...(first ?? [])].sort((a, b) => (a ?? 0) - (b ?? 0))).toEqual(data.map((_, i) => i));
    expect(order(3)).toEqual([first, second]);
    expect(order(4)).not.toEqual([first, second]);
  });

  test("tokens are counted and data that teach nothing are left out", () => {
    const result = minibatches([datum(0, 1, 1), datum(0, 0), datum(1)], {
      ...options,
      epochs: 1,
      random: random(1),
    });
    expect(result.map(({ data, tokens, trainedTokens }) => [data.length, tokens, trainedTokens])).toEqual([
      [2, 4, 3],
    ]);
    expect(minibatches([datum(0)], { ...options, random: random(1) })).toEqual([]);
  });
});
