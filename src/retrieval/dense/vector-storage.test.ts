import fc from "fast-check";
import { expect, test } from "vitest";
import { halfValues, toHalf } from "./half.ts";
import { packRows, rowBytes, unpackRows, type VectorType } from "./vector-storage.ts";

test("every half survives the way to a float and back", () => {
  const values = halfValues();
  for (let half = 0; half < 65_536; half++) {
    const value = values[half] as number;
    if (Number.isNaN(value)) expect(Number.isNaN(values[toHalf(value)] as number)).toBe(true);
    else expect(toHalf(value)).toBe(half);
  }
});

test("a float becomes the nearest half, the even one in the middle", () => {
  const values = halfValues();
  const finite = fc.oneof(
    fc.float({ noNaN: true, noDefaultInfinity: true, min: -65_504, max: 65_504 }),
    fc.float({ noNaN: true, noDefaultInfinity: true, min: Math.fround(-0.001), max: Math.fround(0.001) }),
  );
  fc.assert(
    fc.property(finite, (value) => {
      const half = toHalf(value);
      const distance = Math.abs((values[half] as number) - value);
      for (const other of [half - 1, half + 1]) {
        const neighbour = values[other];
        if (neighbour === undefined || !Number.isFinite(neighbour)) continue;
        const away = Math.abs(neighbour - value);
        expect(distance).toBeLessThanOrEqual(away);
        if (distance === away && distance > 0) expect(half & 1).toBe(0);
      }
    }),
    { numRuns: 2000 },
  );
  expect(toHalf(65_519)).toBe(toHalf(65_504));
  expect(values[toHalf(65_520)]).toBe(Number.POSITIVE_INFINITY);
  expect(values[toHalf(-1e9)]).toBe(Number.NEGATIVE_INFINITY);
  expect(values[toHalf(2 ** -25)]).toBe(0);
  expect(values[toHalf(2 ** -24)]).toBe(2 ** -24);
});

const vectors = Float32Array.from([0.1, -0.25, 0.9, 0, 0, 0, -1, 0.5, 1 / 3]);

function roundTrip(type: VectorType): Float32Array {
  const bytes = packRows(vectors, 3, type);
  expect(bytes.length).toBe(3 * rowBytes(type, 3));
  const target = new Float32Array(vectors.length);
  unpackRows(bytes, target, 3, type);
  return target;
}

test("vectors come back whole from f32, and nearly from f16 and int8", () => {
  expect(roundTrip("f32")).toEqual(vectors);
  for (const [i, value] of roundTrip("f16").entries())
    expect(Math.abs(value - (vectors[i] as number))).toBeLessThanOrEqual(2 ** -11);
  // Half of a step of 1/127 of the largest value of the row.
  for (const [i, value] of roundTrip("int8").entries())
    expect(Math.abs(value - (vectors[i] as number))).toBeLessThanOrEqual(0.5 / 127 + 1e-7);
});
