import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { planMicroBatches } from "./micro-batch.ts";

describe("planMicroBatches", () => {
  it("takes every sequence once, keeps the budget, and pads by at most 256 tokens a call", () => {
    const lengths = fc.array(fc.integer({ min: 1, max: 200 }), { minLength: 1, maxLength: 60 });
    fc.assert(
      fc.property(lengths, fc.integer({ min: 50, max: 1000 }), (values, budget) => {
        const plan = planMicroBatches(values, budget);
        const members = plan.flatMap((batch) => batch.members);
        expect([...members].sort((a, b) => a - b)).toEqual(values.map((_, index) => index));
        for (const { time, members: rows } of plan) {
          const real = rows.reduce((sum, index) => sum + (values[index] as number), 0);
          expect(Math.max(...rows.map((index) => values[index] as number))).toBe(time);
          expect(rows.length === 1 || rows.length * time <= budget).toBe(true);
          expect(rows.length * time - real).toBeLessThanOrEqual(256);
        }
      }),
    );
  });

  it("keeps short sequences together and lets long and short ones part", () => {
    expect(planMicroBatches([3, 5, 5, 3], 100)).toEqual([{ time: 5, members: [1, 2, 0, 3] }]);
    expect(planMicroBatches([30, 300, 300, 30], 1000)).toEqual([
      { time: 300, members: [1, 2] },
      { time: 30, members: [0, 3] },
    ]);
  });
});
