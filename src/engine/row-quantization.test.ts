import fc from "fast-check";
import { expect, test } from "vitest";
import { dequantizeRows, quantizeRows } from "./row-quantization.ts";

test("a matrix by hand: codes lie transposed, each row has its own scale", () => {
  const values = Float32Array.of(1, -2, 0.5, 0, 0, 0, 127, 63.4, -127);
  const { codes, scales } = quantizeRows(values, [3, 3]);
  expect([...codes]).toEqual([64, 0, 127, -127, 0, 63, 32, 0, -127]);
  expect([...scales]).toEqual([Math.fround(2 / 127), 0, 1]);
});

test("weights are off by at most half a step of their row", () => {
  const numbers = fc.double({ min: -4, max: 4, noNaN: true });
  const highest = fc.constantFrom(63, 127);
  fc.assert(
    fc.property(fc.array(numbers, { minLength: 40, maxLength: 40 }), highest, (list, code) => {
      const values = Float32Array.from(list);
      const matrix = quantizeRows(values, [5, 8], code);
      const back = dequantizeRows(matrix);
      for (const [i, value] of values.entries()) {
        const step = matrix.scales[Math.floor(i / 8)] as number;
        expect(Math.abs((back[i] as number) - value)).toBeLessThanOrEqual(0.501 * step + 1e-9);
      }
      expect(Math.max(...matrix.codes.map(Math.abs))).toBeLessThanOrEqual(code);
    }),
  );
});
