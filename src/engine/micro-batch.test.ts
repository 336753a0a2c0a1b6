import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { mostPadding, paddedTokens, planMicroBatches, shareOut } from "./micro-batch.ts";

describe("planMicroBatches", () => {
  it("takes every sequence once, keeps the budget, and pads by at most 15 %", () => {
    const lengths = fc.array(fc.integer({ min: 1, max: 200 }), { minLength: 1, maxLength: 60 });
    fc.assert(
      fc.property(lengths, fc.integer({ min: 50, max: 1000 }), (values, budget) => {
        const plan = planMicroBatches(values, budget);
        const members = plan.flatMap((batch) => batch.members);
        expect([...members].sort((a, b) => a - b)).toEqual(values.map((_, index) => index));
        for (const microBatch of plan) {
          const { time, members: rows } = microBatch;
          const real = rows.reduce((sum, index) => sum + (values[index] as number), 0);
          const padded = paddedTokens(microBatch);
          expect(Math.max(...rows.map((index) => values[index] as number))).toBe(time);
          expect(rows.length === 1 || padded <= budget).toBe(true);
          expect(padded - real).toBeLessThanOrEqual(mostPadding * padded + 1e-9);
        }
      }),
    );
  });

  it("keeps sequences of similar length together and lets long and short ones part", () => {
    expect(planMicroBatches([9, 10, 10, 9], 100)).toEqual([{ time: 10, members: [1, 2, 0, 3] }]);
    expect(planMicroBatches([30, 300, 300, 30], 1000)).toEqual([
      { time: 300, members: [1, 2] },
      { time: 30, members: [0, 3] },
    ]);
  });
});

describe("shareOut", () => {
  it("gives the dearest first, so that lanes end at about the same time, and keeps the order of the plan", () => {
    const plan = [3, 1, 5, 4, 2].map((time, index) => ({ time, members: [index] }));
    const shares = shareOut(plan, 2, ({ time }) => time ** 2);
    expect(shares.map((share) => share.map(({ time }) => time))).toEqual([
      [5, 2],
      [3, 1, 4],
    ]);
  });

  it("gives every micro-batch to one lane, none with more than another would have had with it", () => {
    const costs = fc.array(fc.integer({ min: 1, max: 100 }), { minLength: 1, maxLength: 30 });
    fc.assert(
      fc.property(costs, fc.integer({ min: 1, max: 4 }), (values, lanes) => {
        const plan = values.map((time, index) => ({ time, members: [index] }));
        const shares = shareOut(plan, lanes, paddedTokens);
        const given = shares.flat().flatMap(({ members }) => members);
        expect([...given].sort((a, b) => a - b)).toEqual(values.map((_, index) => index));
        const sums = shares.map((share) => share.reduce((sum, { time }) => sum + time, 0));
        for (const [lane, share] of shares.entries()) {
          const least = Math.min(...share.map(({ time }) => time));
          expect(share.length === 0 ? 0 : (sums[lane] as number) - least).toBeLessThanOrEqual(
            Math.min(...sums),
          );
        }
      }),
    );
  });
});
