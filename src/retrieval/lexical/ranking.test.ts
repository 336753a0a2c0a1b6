import fc from "fast-check";
import { expect, test } from "vitest";
import { Ranker, TopHeap } from "./ranking.ts";

test("the heap keeps what sorting would put first", () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 1, max: 8 })), fc.integer({ min: 1, max: 20 }), (scores, k) => {
      const heap = new TopHeap(k);
      for (const [position, score] of scores.entries()) heap.offer(position, score);
      const sorted = scores
        .map((score, position) => ({ position, score }))
        .sort((a, b) => b.score - a.score || a.position - b.position);
      expect(heap.sorted()).toEqual(sorted.slice(0, k));
    }),
  );
});

test("the heap does not depend on the order of arrival", () => {
  const entries = fc.uniqueArray(fc.tuple(fc.nat(50), fc.integer({ min: 1, max: 4 })), {
    selector: ([position]) => position,
  });
  fc.assert(
    fc.property(entries, fc.integer({ min: 1, max: 10 }), (list, k) => {
      const [there, back] = [new TopHeap(k), new TopHeap(k)];
      for (const [position, score] of list) there.offer(position, score);
      for (const [position, score] of [...list].reverse()) back.offer(position, score);
      expect(back.sorted()).toEqual(there.sorted());
    }),
  );
});

test("few and many entries take different ways to the same ranking, and leave nothing behind", () => {
  const count = 200;
  const all = Uint32Array.from({ length: count }, (_, position) => position);
  const impacts = Float32Array.from({ length: count }, (_, position) => 1 + (position % 7));
  const ranker = new Ranker(count);
  const rank = (from: number, to: number) =>
    ranker.rank([{ passages: all, impacts, from, to, weight: 1 }], 3);
  // Up to a sixteenth of the corpus is ranked from a list of the passages touched.
  const few = rank(0, 12);
  expect(few).toEqual([
    { position: 6, score: 7 },
    { position: 5, score: 6 },
    { position: 4, score: 5 },
  ]);
  expect(rank(0, count).map(({ position }) => position)).toEqual([6, 13, 20]);
  expect(rank(0, 12)).toEqual(few);
  expect(rank(5, 5)).toEqual([]);
});
