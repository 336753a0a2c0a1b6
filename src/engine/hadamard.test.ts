import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { hadamardMatrix, pieceSize, rotatePieces } from "./hadamard.ts";

describe("a rotation in pieces", () => {
  test("of 4 numbers is the product with the matrix of Hadamard, by hand", () => {
    const half = [1, 1, 1, 1, 1, -1, 1, -1, 1, 1, -1, -1, 1, -1, -1, 1].map((sign) => sign / 2);
    expect([...hadamardMatrix(4)]).toEqual(half);
    expect([...rotatePieces(Float32Array.of(8, 0, 0, 0, 1, 2, 3, 4), 4)]).toEqual([4, 4, 4, 4, 5, -1, -2, 0]);
  });

  test("keeps lengths and is undone by itself", () => {
    const sizes = fc.constantFrom(1, 2, 8, 64);
    const numbers = fc.double({ min: -10, max: 10, noNaN: true });
    fc.assert(
      fc.property(sizes, fc.array(numbers, { minLength: 128, maxLength: 128 }), (size, list) => {
        const values = Float32Array.from(list);
        const rotated = rotatePieces(values, size);
        const back = rotatePieces(rotated, size);
        const norm = (array: Float32Array): number => Math.hypot(...array);
        expect(norm(rotated)).toBeCloseTo(norm(values), 3);
        for (const [i, value] of values.entries()) expect(back[i]).toBeCloseTo(value, 4);
      }),
    );
  });

  test("has the largest pieces that a length allows, up to 64", () => {
    expect([576, 1536, 100, 7, 32].map(pieceSize)).toEqual([64, 64, 4, 1, 32]);
  });
});
