import fc from "fast-check";
import { expect, test } from "vitest";
import { entryMemory, SumKernel, WINDOW } from "./sum-kernel.ts";

const FIRST = 100_000;

/** Entries of passages of a window that begins at `FIRST`. */
const terms = fc.array(
  fc.record({
    places: fc.uniqueArray(fc.nat(299), { maxLength: 200 }),
    weight: fc.double({ min: 0.01, max: 3, noNaN: true }),
    seed: fc.integer({ min: 1, max: 1000 }),
  }),
  { maxLength: 6 },
);

test.each(["copied into the kernel", "that lie in its memory"])(
  "sums of entries %s are those of JavaScript to the last bit, and those found are cleared with all others",
  (where) => {
    const memory = entryMemory(10_000, 2);
    const kernels = where.startsWith("copied")
      ? [new SumKernel()]
      : [0, 1].map((thread) => new SumKernel(memory?.memory, thread));
    fc.assert(
      fc.property(terms, fc.double({ min: 0.001, max: 5, noNaN: true }), (list, floor) => {
        for (const kernel of kernels) {
          const sums = new Float64Array(300);
          let from = 17;
          for (const { places, weight, seed } of list) {
            const made = places
              .toSorted((a, b) => a - b)
              .map((place) => ({ place, impact: Math.fround(seed / (place + 3)) }));
            const to = from + made.length;
            const passages = where.startsWith("copied") || !memory ? new Uint32Array(2000) : memory.passages;
            const impacts = where.startsWith("copied") || !memory ? new Float32Array(2000) : memory.impacts;
            for (const [i, { place, impact }] of made.entries()) {
              passages[from + i] = FIRST + place;
              impacts[from + i] = impact;
              sums[place] = (sums[place] as number) + weight * impact;
            }
            kernel.add({ passages, impacts, from, to, weight }, FIRST);
            from = to;
          }
          expect(kernel.sums.subarray(0, 300)).toEqual(sums);
          const expected = [...sums.entries()].filter(([, sum]) => sum >= floor);
          const found = kernel.find(300, floor);
          expect(
            Array.from(kernel.places.subarray(0, found), (place, i) => [place, kernel.scores[i]]),
          ).toEqual(expected);
          expect(kernel.sums.every((sum) => sum === 0)).toBe(true);
        }
      }),
    );
  },
);

test("a window that is full is found whole", () => {
  const kernel = new SumKernel();
  const passages = Uint32Array.from({ length: WINDOW }, (_, i) => i);
  kernel.add({ passages, impacts: new Float32Array(WINDOW).fill(2), from: 0, to: WINDOW, weight: 1.5 }, 0);
  expect(kernel.find(WINDOW, 3)).toBe(WINDOW);
  expect(kernel.places).toEqual(passages);
  expect(kernel.scores.every((score) => score === 3)).toBe(true);
});

test("entries that exceed the memory of WebAssembly have none", () => {
  expect(entryMemory(2 ** 29, 1)).toBeUndefined();
});
