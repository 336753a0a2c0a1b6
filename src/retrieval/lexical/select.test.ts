import fc from "fast-check";
import { expect, test } from "vitest";
import { nthLargest, sortByScore } from "./select.ts";

const values = fc.array(
  fc.oneof(fc.integer({ min: 0, max: 5 }), fc.double({ min: 0, max: 9, noNaN: true })),
  {
    minLength: 1,
    maxLength: 200,
  },
);

test("the n-th largest is where sorting puts it", () => {
  fc.assert(
    fc.property(values, fc.nat(199), (list, n) => {
      const rank = (n % list.length) + 1;
      const sorted = list.toSorted((a, b) => b - a);
      expect(nthLargest(Float64Array.from([...list, 99]), list.length, rank)).toBe(sorted[rank - 1]);
    }),
    { numRuns: 1000 },
  );
});

test("lists of equal values and sorted lists are selected from", () => {
  for (const list of [Array(1000).fill(1), [...Array(1000).keys()], [...Array(1000).keys()].reverse()])
    for (const rank of [1, 2, 500, 1000])
      expect(nthLargest(Float64Array.from(list), 1000, rank)).toBe(list.toSorted((a, b) => b - a)[rank - 1]);
});

test("sorting by score puts equal scores in the order of the corpus", () => {
  fc.assert(
    fc.property(values, (list) => {
      const entries = list.map((score, i) => ({ score, position: (i * 7919) % 1009 }));
      const scores = Float64Array.from(list);
      const positions = Uint32Array.from(entries, ({ position }) => position);
      sortByScore(scores, positions);
      const sorted = entries.toSorted((a, b) => b.score - a.score || a.position - b.position);
      expect(Array.from(scores, (score, i) => ({ score, position: positions[i] }))).toEqual(sorted);
    }),
  );
});
