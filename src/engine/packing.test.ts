import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { layTokens, packSequences } from "./packing.ts";

const sequence = fc.array(fc.integer({ min: 0, max: 2 }), { minLength: 1, maxLength: 9 });
const sequences = fc
  .array(sequence, { minLength: 1, maxLength: 80 })
  .map((lists) => lists.map((list) => Int32Array.from(list)));

describe("packing", () => {
  test("gives each token a row that holds it, whose whole beginning is that of the token", () => {
    fc.assert(
      fc.property(sequences, (all) => {
        const { tokens, positions, rowOfPlace, placeOfRow } = packSequences(all, 9);
        for (const [index, one] of all.entries()) {
          for (const [t, token] of one.entries()) {
            const row = rowOfPlace[index * 9 + t] as number;
            expect([tokens[row], positions[row]]).toEqual([token, t]);
            const place = placeOfRow[row] as number;
            const first = all[Math.floor(place / 9)] as Int32Array;
            expect([...first.subarray(0, t + 1)]).toEqual([...one.subarray(0, t + 1)]);
          }
        }
      }),
    );
  });

  test("lists every place of a row that has several, and counts what that saves", () => {
    fc.assert(
      fc.property(sequences, (all) => {
        const { tokens, rowOfPlace, repeated, sharedTokens } = packSequences(all, 9);
        const total = all.reduce((sum, { length }) => sum + length, 0);
        expect(tokens.length + sharedTokens).toBe(total);
        for (const { row, places } of repeated) {
          expect(places.length).toBeLessThanOrEqual(32);
          for (const place of places) expect(rowOfPlace[place]).toBe(row);
        }
        const listed = repeated.reduce((sum, { places }) => sum + places.length - 1, 0);
        expect(listed).toBe(sharedTokens);
        if (sharedTokens === 0) return;
        const widest = Math.max(...repeated.map(({ places }) => places.length));
        expect(repeated.length * widest).toBeLessThanOrEqual(2 * (repeated.length + sharedTokens));
      }),
    );
  });

  test("computes a common beginning once", () => {
    const { tokens, positions } = packSequences(
      [Int32Array.of(5, 6, 7), Int32Array.of(5, 6, 8, 9), Int32Array.of(5, 1)],
      4,
    );
    expect([...tokens]).toEqual([5, 6, 7, 8, 9, 1]);
    expect([...positions]).toEqual([0, 1, 2, 2, 3, 1]);
  });

  test("goes on sharing where more sequences begin alike than one row may have places", () => {
    const common = Array.from({ length: 70 }, (_, index) => Int32Array.from([5, 6, 7, 100 + index]));
    expect(packSequences(common, 4).tokens).toHaveLength(3 * 3 + 70);
    const inPairs = Array.from({ length: 70 }, (_, index) =>
      Int32Array.from({ length: 52 }, (_, t) => (t < 50 ? t : t === 50 ? index % 35 : index)),
    );
    expect(packSequences(inPairs, 52).tokens).toHaveLength(50 * 3 + 35 + 70);
  });

  test("makes rows of fewer places where most are of few", () => {
    const inPairs = Array.from({ length: 32 }, (_, index) =>
      Int32Array.from({ length: 128 }, (_, t) => (t < 20 ? t : 1000 + (index >> 1))),
    );
    const { tokens, repeated } = packSequences(inPairs, 128);
    expect(tokens).toHaveLength(20 * 8 + 16 * 108);
    expect(new Set(repeated.map(({ places }) => places.length))).toEqual(new Set([4, 2]));
  });

  test("is left out where it saves next to nothing", () => {
    const apart = [0, 1, 2].map((start) => Int32Array.from({ length: 50 }, (_, t) => start + t));
    expect(layTokens(apart, 50)).toEqual({
      tokens: Int32Array.from(apart.flatMap((one) => [...one])),
      batch: 3,
      time: 50,
    });
    expect(layTokens([...apart, apart[0] as Int32Array], 50).packing?.sharedTokens).toBe(50);
  });
});
