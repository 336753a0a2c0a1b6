import fc from "fast-check";
import { expect, test } from "vitest";
import { rotatePieces } from "./hadamard.ts";
import { dequantizeRows, quantizeRows as naively, rotateColumns } from "./row-quantization.fixture.ts";
import { quantizeRows, type RotatedMatrix } from "./row-quantization.ts";

async function quantize(
  parts: readonly RotatedMatrix[],
  highest = 127,
): Promise<{ codes: Int8Array; scales: Float32Array; rows: number; columns: number }> {
  const rows = parts.reduce((sum, { shape }) => sum + shape[0], 0);
  const columns = parts[0]?.shape[1] as number;
  const [codes, scales] = [new Int8Array(rows * columns), new Float32Array(rows)];
  await quantizeRows([{ parts, codes, scales }], { highest, threads: 2 });
  return { codes, scales, rows, columns };
}

test("a matrix by hand: codes lie transposed, each row has its own scale", async () => {
  const data = Float32Array.of(1, -2, 0.5, 0, 0, 0, 127, 63.4, -127);
  const { codes, scales } = await quantize([{ data, shape: [3, 3], rowPiece: 1 }]);
  expect([...codes]).toEqual([64, 0, 127, -127, 0, 63, 32, 0, -127]);
  expect([scales[0], scales[2]]).toEqual([Math.fround(2 / 127), 1]);
  expect(scales[1]).toBeGreaterThan(0);
});

test("weights are off by at most half a step of their row", async () => {
  const numbers = fc.double({ min: -4, max: 4, noNaN: true });
  const highest = fc.constantFrom(63, 127);
  await fc.assert(
    fc.asyncProperty(fc.array(numbers, { minLength: 40, maxLength: 40 }), highest, async (list, code) => {
      const data = Float32Array.from(list);
      const matrix = await quantize([{ data, shape: [5, 8], rowPiece: 1 }], code);
      const back = dequantizeRows(matrix);
      for (const [i, value] of data.entries()) {
        const step = matrix.scales[Math.floor(i / 8)] as number;
        expect(Math.abs((back[i] as number) - value)).toBeLessThanOrEqual(0.501 * step + 1e-9);
      }
      expect(Math.max(...matrix.codes.map(Math.abs))).toBeLessThanOrEqual(code);
    }),
  );
});

test("matrices below one another, their rows and columns rotated in pieces, are rounded as by plain loops", async () => {
  const numbers = (count: number, step: number): Float32Array =>
    Float32Array.from({ length: count }, (_, i) => Math.sin(step * i) + 3 * Math.cos(i / 7));
  const [first, second] = [numbers(6 * 16, 1.3), numbers(8 * 16, 2.7)];
  const matrix = await quantize([
    { data: first, shape: [6, 16], rowPiece: 8 },
    { data: second, shape: [8, 16], rowPiece: 16, columnPiece: 4 },
  ]);
  const turned = [rotatePieces(first, 8), rotateColumns(rotatePieces(second, 16), 4, 16)];
  const whole = Float32Array.from(turned.flatMap((part) => [...part]));
  const expected = dequantizeRows(naively(whole, [14, 16]));
  for (const [i, value] of dequantizeRows(matrix).entries()) {
    const step = matrix.scales[Math.floor(i / 16)] as number;
    // A number halfway between two codes may become either.
    const difference = Math.abs(value - (expected[i] as number));
    const isHalfway = Math.abs(Math.abs(((whole[i] as number) / step) % 1) - 0.5) < 1e-3;
    expect(difference).toBeLessThan(isHalfway ? 1.01 * step : 1e-5);
  }
});

test("a matrix of more numbers than are rounded at once is rounded as by plain loops", async () => {
  const [rows, columns] = [1120, 1024];
  const numbers = (count: number): Float32Array =>
    Float32Array.from({ length: count }, (_, i) => Math.sin(i) * (1 + (i % 97)));
  const [long, short] = [numbers(1104 * columns), numbers(16 * columns)];
  const matrix = await quantize([
    { data: long, shape: [1104, columns], rowPiece: 64, columnPiece: 16 },
    { data: short, shape: [16, columns], rowPiece: 64 },
  ]);
  const whole = new Float32Array(rows * columns);
  whole.set(rotateColumns(rotatePieces(long, 64), 16, columns));
  whole.set(rotatePieces(short, 64), 1104 * columns);
  const expected = naively(whole, [rows, columns]);
  for (const [row, scale] of matrix.scales.entries())
    expect(Math.abs(scale / (expected.scales[row] as number) - 1)).toBeLessThan(1e-5);
  const differences = matrix.codes.map((code, i) => Math.abs(code - (expected.codes[i] as number)));
  // A number halfway between two codes may become either.
  expect(Math.max(...new Set(differences))).toBeLessThanOrEqual(1);
  expect(differences.filter((difference) => difference > 0).length).toBeLessThan(200);
});
