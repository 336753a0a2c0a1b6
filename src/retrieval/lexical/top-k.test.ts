import fc from "fast-check";
import { expect, test } from "vitest";
import { TopK } from "./top-k.ts";

interface Entry {
  readonly position: number;
  readonly score: number;
}

function best(entries: readonly Entry[], k: number, top = new TopK()): Entry[] {
  top.reset(k);
  for (const { position, score } of entries) if (score >= top.threshold) top.offer(position, score);
  const { positions, scores } = top.take();
  return Array.from(positions, (position, i) => ({ position, score: scores[i] as number }));
}

const positioned = fc.uniqueArray(
  fc.record({ position: fc.nat(500), score: fc.integer({ min: 1, max: 8 }) }),
  { selector: ({ position }) => position, maxLength: 300 },
);

test("keeps what sorting would put first, whatever the order of arrival and what was held before", () => {
  const top = new TopK();
  fc.assert(
    fc.property(positioned, fc.integer({ min: 1, max: 40 }), (entries, k) => {
      const sorted = entries.toSorted((a, b) => b.score - a.score || a.position - b.position);
      expect(best(entries, k, top)).toEqual(sorted.slice(0, k));
    }),
    { numRuns: 500 },
  );
});

test("the threshold is the worst score of the best once there are enough", () => {
  const top = new TopK();
  top.reset(2);
  const thresholdAfter = (position: number, score: number): number => {
    top.offer(position, score);
    top.settle();
    return top.threshold;
  };
  expect(thresholdAfter(0, 5)).toBe(0);
  expect(thresholdAfter(1, 3)).toBe(3);
  expect(thresholdAfter(2, 4)).toBe(4);
});

test("without room nothing is taken", () => {
  expect(best([{ position: 0, score: 1 }], 0)).toEqual([]);
});
