import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { random } from "../shared/random.ts";
import { bootstrapMean, bootstrapMeans, bootstrapSeeds, type Estimate } from "./bootstrap.ts";

const width = (estimate: Estimate | undefined): number =>
  estimate ? estimate.ci[1] - estimate.ci[0] : Number.NaN;

function bernoulli(n: number, share: number, seed: number): number[] {
  const chance = random(seed, "data");
  return Array.from({ length: n }, () => (chance.next() < share ? 1 : 0));
}

describe("bootstrapMean", () => {
  test("of half zeros and half ones the interval is mean +- 1.96 sqrt(p (1 - p) / n)", () => {
    const values = Array.from({ length: 400 }, (_, i) => i % 2);
    const estimate = bootstrapMean(values, { seed: 1, resamples: 8000 });
    expect(estimate?.n).toBe(400);
    expect(estimate?.mean).toBe(0.5);
    expect(estimate?.ci[0]).toBeCloseTo(0.451, 2);
    expect(estimate?.ci[1]).toBeCloseTo(0.549, 2);
  });

  test("95 % of the intervals cover the true mean, within the error of the simulation", () => {
    const runs = 400;
    let covered = 0;
    for (let seed = 0; seed < runs; seed++) {
      const chance = random(seed, "data");
      const values = Array.from({ length: 60 }, () => chance.next());
      const [low, high] = bootstrapMean(values, { seed, resamples: 400 })?.ci ?? [1, 0];
      if (low <= 0.5 && high >= 0.5) covered++;
    }
    expect(covered / runs).toBeGreaterThan(0.92);
    expect(covered / runs).toBeLessThan(0.97);
  });

  test("the interval holds the mean and stays within the values", () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: -20, max: 20 }), { minLength: 1, maxLength: 30 }), (values) => {
        const estimate = bootstrapMean(values, { seed: 3, resamples: 500 });
        const [low, high] = estimate?.ci ?? [Number.NaN, Number.NaN];
        expect(low).toBeLessThanOrEqual((estimate?.mean ?? Number.NaN) + 1e-9);
        expect(high).toBeGreaterThanOrEqual((estimate?.mean ?? Number.NaN) - 1e-9);
        expect(low).toBeGreaterThanOrEqual(Math.min(...values) - 1e-9);
        expect(high).toBeLessThanOrEqual(Math.max(...values) + 1e-9);
      }),
      { numRuns: 50 },
    );
  });

  test("equal seeds give equal intervals, other seeds others", () => {
    const values = Array.from({ length: 30 }, (_, i) => i * i);
    expect(bootstrapMean(values, { seed: 1 })).toEqual(bootstrapMean(values, { seed: 1 }));
    expect(bootstrapMean(values, { seed: 1 })).not.toEqual(bootstrapMean(values, { seed: 2 }));
  });

  test("a column among others has the interval it has alone", () => {
    const columns = [bernoulli(50, 0.5, 1), bernoulli(50, 0.2, 2)];
    const alone = columns.map((column) => bootstrapMean(column, { seed: 4 }));
    expect(bootstrapMeans(columns, { seed: 4 })).toEqual(alone);
    expect(() => bootstrapMeans([[1, 2], [1]], { seed: 4 })).toThrow("equal length");
  });

  test("no values have no mean, one value has no width", () => {
    expect(bootstrapMean([], { seed: 1 })).toBeUndefined();
    expect(bootstrapMean([3], { seed: 1 })).toEqual({ n: 1, mean: 3, ci: [3, 3] });
  });
});

describe("bootstrapSeeds", () => {
  const options = { seed: 1, resamples: 4000 };
  const questions = bernoulli(200, 0.5, 9);

  test("seeds that agree are as uncertain as one seed: more seeds bring no more questions", () => {
    const one = bootstrapMean(questions, options);
    const five = bootstrapSeeds(
      Array.from({ length: 5 }, () => questions),
      options,
    );
    expect(five).toMatchObject({ n: 200, mean: one?.mean });
    expect(width(five)).toBeCloseTo(width(one), 2);
  });

  test("seeds that differ widen the interval as the variance of their mean says", () => {
    // Two seeds, all right and all wrong: the resampled mean is 0, 1/2 or 1 with chances 1/4, 1/2, 1/4.
    const apart = bootstrapSeeds([new Array<number>(50).fill(0), new Array<number>(50).fill(1)], options);
    expect(apart).toEqual({ n: 50, mean: 0.5, ci: [0, 1] });
  });

  test("every seed needs a value for every question", () => {
    expect(() => bootstrapSeeds([[1, 0], [1]], options)).toThrow("every seed");
    expect(bootstrapSeeds([], options)).toBeUndefined();
  });
});
