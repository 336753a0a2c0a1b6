import fc from "fast-check";
import { expect, test } from "vitest";
import { TopHeap } from "./top-heap.ts";

interface Entry {
  readonly position: number;
  readonly score: number;
}

function best(entries: readonly Entry[], k: number, heap = new TopHeap(k)): Entry[] {
  for (const { position, score } of entries) heap.offer(position, score);
  const { positions, scores } = heap.take();
  return Array.from(positions, (position, i) => ({ position, score: scores[i] as number }));
}

test("the heap keeps what sorting would put first", () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 1, max: 8 })), fc.integer({ min: 1, max: 20 }), (scores, k) => {
      const entries = scores.map((score, position) => ({ position, score }));
      const sorted = entries.toSorted((a, b) => b.score - a.score || a.position - b.position);
      expect(best(entries, k)).toEqual(sorted.slice(0, k));
    }),
  );
});

test("the heap does not depend on the order of arrival, nor on what it held before", () => {
  const list = fc.uniqueArray(fc.record({ position: fc.nat(50), score: fc.integer({ min: 1, max: 4 }) }), {
    selector: ({ position }) => position,
  });
  const heap = new TopHeap(1);
  fc.assert(
    fc.property(list, fc.integer({ min: 1, max: 10 }), (entries, k) => {
      heap.reset(k);
      expect(best(entries.toReversed(), k, heap)).toEqual(best(entries, k));
    }),
  );
});

test("the threshold is the worst score once the heap is full", () => {
  const heap = new TopHeap(2);
  heap.offer(0, 5);
  expect(heap.threshold).toBe(0);
  heap.offer(1, 3);
  expect(heap.threshold).toBe(3);
  heap.offer(2, 4);
  expect(heap.threshold).toBe(4);
});

test("a heap without room takes nothing", () => {
  expect(best([{ position: 0, score: 1 }], 0)).toEqual([]);
});
