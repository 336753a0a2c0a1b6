import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { random } from "../shared/random.ts";
import { describeDifference, pairedTest, randomizationP } from "./paired-test.ts";

/** Every sign pattern of every difference, zeros included, without any cleverness. */
function naiveP(differences: readonly number[]): number {
  const observed = Math.abs(differences.reduce((sum, value) => sum + value, 0));
  let sums = [0];
  for (const difference of differences) sums = sums.flatMap((sum) => [sum + difference, sum - difference]);
  return sums.filter((sum) => Math.abs(sum) >= observed - 1e-9).length / sums.length;
}

describe("randomizationP", () => {
  test.each([
    { differences: [], p: 1 },
    { differences: [0, 0, 0], p: 1 },
    { differences: [1, 1, 1, 1, 1], p: 2 / 32 },
    { differences: [1, 1, 1, 1, 1, 0, 0], p: 2 / 32 },
    { differences: [1, 1, 1, -1], p: 10 / 16 },
  ])("of $differences is $p", ({ differences, p }) => {
    expect(randomizationP(differences, random(1))).toBe(p);
  });

  test("agrees with brute force when all patterns are tried", () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: -5, max: 5 }), { maxLength: 9 }), (integers) => {
        const differences = integers.map((value) => value / 10);
        expect(randomizationP(differences, random(1))).toBeCloseTo(naiveP(differences), 12);
      }),
    );
  });

  test("random patterns come near the exact p, here that of a binomial", () => {
    // 12 of 16 pairs up: P(at least 12 or at most 4 of 16 heads) = 2 * 2517 / 65536.
    const differences = Array.from({ length: 16 }, (_, i) => (i < 12 ? 1 : -1));
    expect(randomizationP(differences, random(1))).toBeCloseTo((2 * 2517) / 65536, 2);
  });

  test("is never zero", () => {
    expect(randomizationP(new Array<number>(200).fill(1), random(1))).toBe(1 / 10_001);
  });

  test("is below 0.05 in about 5 % of comparisons of what is equal", () => {
    let rejected = 0;
    for (let run = 0; run < 400; run++) {
      const chance = random(run, "null");
      const differences = Array.from({ length: 12 }, () => chance.normal());
      if (randomizationP(differences, chance) < 0.05) rejected++;
    }
    expect(rejected / 400).toBeGreaterThan(0.02);
    expect(rejected / 400).toBeLessThan(0.08);
  });
});

describe("pairedTest", () => {
  const before = Array.from({ length: 40 }, (_, i) => (i < 10 ? 1 : 0));
  const after = Array.from({ length: 40 }, (_, i) => (i < 24 ? 1 : 0));

  test("a clear gain is better, the same loss is worse", () => {
    const gain = pairedTest(before, after, { seed: 1 });
    expect(gain).toMatchObject({ n: 40, mean: 0.35, verdict: "better" });
    expect(gain?.ci[0]).toBeGreaterThan(0.15);
    expect(gain?.p).toBeLessThan(0.001);
    expect(pairedTest(after, before, { seed: 1 })).toMatchObject({ mean: -0.35, verdict: "worse" });
  });

  test("of a cost less is better", () => {
    expect(pairedTest(before, after, { seed: 1, better: "lower" })).toMatchObject({ verdict: "worse" });
  });

  test("equal results and few pairs are not distinguishable", () => {
    expect(pairedTest(before, before, { seed: 1 })).toMatchObject({
      mean: 0,
      p: 1,
      verdict: "not distinguishable",
    });
    expect(pairedTest([0, 0, 0], [1, 1, 1], { seed: 1 })).toMatchObject({
      p: 0.25,
      verdict: "not distinguishable",
    });
    expect(pairedTest([], [], { seed: 1 })).toBeUndefined();
  });

  test("pairs must be pairs", () => {
    expect(() => pairedTest([1], [1, 2], { seed: 1 })).toThrow("1 values are paired with 2");
  });
});

test("a difference is told in one sentence, with what it rests on", () => {
  const numbers = { n: 200, mean: 0.35, ci: [0.29, 0.41] as [number, number], p: 0.0001 };
  const names = { metric: "em", before: "warm-up", after: "grpo" };
  expect(describeDifference({ ...numbers, verdict: "better" }, names)).toBe(
    "em: grpo is better than warm-up by +0.350 (95 % interval 0.290 to 0.410, p = 0.00010, n = 200)",
  );
  expect(
    describeDifference({ ...numbers, verdict: "worse" }, { ...names, metric: "searches", isNeutral: true }),
  ).toBe(
    "searches: grpo is higher than warm-up by +0.350 (95 % interval 0.290 to 0.410, p = 0.00010, n = 200)",
  );
  expect(describeDifference({ ...numbers, mean: -0.01, p: 0.5, verdict: "not distinguishable" }, names)).toBe(
    "em: grpo and warm-up are not distinguishable, -0.010 (95 % interval 0.290 to 0.410, p = 0.50, n = 200)",
  );
});
