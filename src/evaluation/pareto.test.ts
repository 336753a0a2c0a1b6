import fc from "fast-check";
import { expect, test } from "vitest";
import { hypervolume, paretoFront } from "./pareto.ts";

const at = (utility: number, cost: number) => ({ utility, cost });

test("the front of the paper's table 3 leaves out what costs more for less", () => {
  const points = [at(0.597, 2.26), at(0.606, 1.886), at(0.599, 1.755), at(0.51, 1), at(0.51, 1)];
  expect(paretoFront(points)).toEqual([at(0.51, 1), at(0.599, 1.755), at(0.606, 1.886)]);
  // Worked by hand: 0.51 * 4 + 0.089 * 3.245 + 0.007 * 3.114 = 2.350603, over 5.
  expect(hypervolume(points, at(0, 5))).toBeCloseTo(0.4701206, 9);
});

test.each([
  ["no points", [], 0],
  ["a point at the worst", [at(0, 4)], 0],
  ["a point beyond the worst cost", [at(1, 5)], 0],
  ["the best there is", [at(1, 0)], 1],
  ["one point", [at(0.5, 1)], 0.375],
  ["a point twice", [at(0.5, 1), at(0.5, 1)], 0.375],
  ["a tie in cost", [at(0.5, 1), at(0.25, 1)], 0.375],
  ["a tie in utility", [at(0.5, 1), at(0.5, 2)], 0.375],
])("the hypervolume of %s", (_, points, value) => {
  expect(hypervolume(points, at(0, 4))).toBe(value);
});

const points = fc.array(
  fc.record({ utility: fc.integer({ min: -2, max: 10 }), cost: fc.integer({ min: 0, max: 12 }) }),
);

test("every point is on the front or dominated by a point of it, and none of the front is dominated", () => {
  fc.assert(
    fc.property(points, (all) => {
      const front = paretoFront(all);
      const isCovered = (p: (typeof all)[number]): boolean =>
        front.some(({ utility, cost }) => utility >= p.utility && cost <= p.cost);
      expect(all.every(isCovered)).toBe(true);
      for (const p of front)
        expect(
          all.some(
            (q) => q.utility >= p.utility && q.cost <= p.cost && (q.utility > p.utility || q.cost < p.cost),
          ),
        ).toBe(false);
    }),
  );
});

test("the hypervolume is the share of a grid that the points dominate", () => {
  fc.assert(
    fc.property(points, (all) => {
      let cells = 0;
      for (let utility = 0; utility < 10; utility++)
        for (let cost = 0; cost < 10; cost++)
          if (all.some((p) => p.utility >= utility + 1 && p.cost <= cost)) cells++;
      expect(hypervolume(all, { utility: 0, cost: 10 })).toBeCloseTo(cells / 10, 9);
    }),
  );
});
