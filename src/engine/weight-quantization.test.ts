import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { blockSize, dequantizeMatrix, quantizeMatrix, type WeightBits } from "./weight-quantization.ts";

const weights = fc.double({ min: -4, max: 4, noNaN: true }).map(Math.fround);
const matrix = fc
  .tuple(fc.integer({ min: 1, max: 5 }), fc.integer({ min: 1, max: 100 }))
  .chain(([rows, columns]) =>
    fc.record({
      shape: fc.constant([rows, columns] as const),
      values: fc
        .array(weights, { minLength: rows * columns, maxLength: rows * columns })
        .map((values) => Float32Array.from(values)),
    }),
  );

describe.each<WeightBits>([4, 8])("weights in %d bits", (bits) => {
  test("are off by at most a step of their block", () => {
    fc.assert(
      fc.property(matrix, ({ shape, values }) => {
        const [, columns] = shape;
        const back = dequantizeMatrix(quantizeMatrix(values, shape, bits));
        for (const [i, value] of values.entries()) {
          const row = Math.floor(i / columns);
          const block = Math.floor((i % columns) / blockSize);
          const start = row * columns + block * blockSize;
          const members = values.subarray(start, Math.min(start + blockSize, (row + 1) * columns));
          const step = (Math.max(0, ...members) - Math.min(0, ...members)) / (2 ** bits - 1);
          expect(Math.abs((back[i] as number) - value)).toBeLessThanOrEqual(1.001 * step + 1e-27);
        }
      }),
    );
  });

  test("are exact where they lie on a grid with a whole zero point", () => {
    const scale = 0.25;
    const zero = 2 ** (bits - 1) - 3;
    const values = Float32Array.from({ length: 3 * 70 }, (_, i) => ((i * 7) % 2 ** bits) - zero);
    // Each block of 32 must hold both ends of the grid.
    for (let i = 0; i < values.length; i += 2) values[i] = i % 4 === 0 ? -zero : 2 ** bits - 1 - zero;
    const grid = values.map((value) => value * scale);
    expect(dequantizeMatrix(quantizeMatrix(grid, [3, 70], bits))).toEqual(grid);
  });

  test("keep zeros, and blocks of zeros", () => {
    const values = Float32Array.from({ length: 96 }, (_, i) => (i < 64 && i % 3 > 0 ? i - 20 : 0));
    const back = dequantizeMatrix(quantizeMatrix(values, [1, 96], bits));
    for (const [i, value] of values.entries()) if (value === 0) expect(Math.abs(back[i] as number)).toBe(0);
  });
});

test("four bits lie two in a byte, the first in the low half", () => {
  const values = Float32Array.from({ length: 32 }, (_, i) => (i % 16) - 5);
  const { codes, scales, zeroPoints } = quantizeMatrix(values, [1, 32], 4);
  expect([[...codes.subarray(0, 3)], scales[0], zeroPoints[0]]).toEqual([[0x10, 0x32, 0x54], 1, 5]);
});
