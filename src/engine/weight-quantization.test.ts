import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { blockSize, dequantizeMatrix, quantizeMatrix } from "./weight-quantization.ts";

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

describe("weights in 4 bits", () => {
  test("are off by at most half a step of their block", () => {
    fc.assert(
      fc.property(matrix, ({ shape, values }) => {
        const [, columns] = shape;
        const back = dequantizeMatrix(quantizeMatrix(values, shape));
        for (const [i, value] of values.entries()) {
          const row = Math.floor(i / columns);
          const block = Math.floor((i % columns) / blockSize);
          const start = row * columns + block * blockSize;
          const members = values.subarray(start, Math.min(start + blockSize, (row + 1) * columns));
          const step = (Math.max(...members) - Math.min(...members)) / 15;
          expect(Math.abs((back[i] as number) - value)).toBeLessThanOrEqual(0.501 * step + 1e-6);
        }
      }),
    );
  });

  test("come back where a block holds both ends of its grid, wherever that lies", () => {
    const highest = 15;
    const values = Float32Array.from({ length: 3 * 70 }, (_, i) => {
      const code = i % 3 === 0 ? 0 : i % 3 === 1 ? highest : (i * 7) % (highest + 1);
      return code * 0.25 - 0.7;
    });
    const back = dequantizeMatrix(quantizeMatrix(values, [3, 70]));
    for (const [i, value] of values.entries()) expect(back[i]).toBeCloseTo(value, 5);
  });

  test("have small offsets where the range of a block holds zero", () => {
    const values = Float32Array.from({ length: 64 }, (_, i) => ((i * 37) % 64) / 10 - 2);
    const { offsets, scales } = quantizeMatrix(values, [2, 32]);
    for (const [i, offset] of offsets.entries())
      expect(Math.abs(offset)).toBeLessThanOrEqual(0.501 * (scales[i] as number));
  });

  test("that are all equal come back", () => {
    const values = Float32Array.from({ length: 96 }, (_, i) => (i < 32 ? 0 : i < 64 ? -3 : 1.5));
    expect(dequantizeMatrix(quantizeMatrix(values, [1, 96]))).toEqual(values);
  });
});

test("four bits lie two in a byte, the first in the low half", () => {
  const values = Float32Array.from({ length: 32 }, (_, i) => (i % 16) - 5);
  const { codes, scales, zeroPoints } = quantizeMatrix(values, [1, 32]);
  expect([[...codes.subarray(0, 3)], scales[0], zeroPoints[0]]).toEqual([[0x10, 0x32, 0x54], 1, 5]);
});
