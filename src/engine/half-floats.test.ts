import { expect, test } from "vitest";
import { decodeBfloat16, decodeFloat16, halfToFloat } from "./half-floats.ts";

test.each([
  [0x0000, 0],
  [0x8000, -0],
  [0x3c00, 1],
  [0xc000, -2],
  [0x3555, 0.333251953125],
  [0x7bff, 65504],
  [0x0001, 2 ** -24],
  [0x03ff, 1023 * 2 ** -24],
  [0x0400, 2 ** -14],
  [0x7c00, Number.POSITIVE_INFINITY],
  [0xfc00, Number.NEGATIVE_INFINITY],
  [0x7e00, Number.NaN],
])("binary16 %i is %d", (bits, value) => {
  expect(halfToFloat(bits)).toBe(value);
});

test("bfloat16 is the upper half of a float32, whatever its sign", () => {
  const values = Float32Array.of(1, -1, 3.140625, -(2 ** 100), 2 ** -130, Number.NEGATIVE_INFINITY);
  const bytes = new Uint8Array(values.buffer);
  const upper = Uint8Array.from(
    { length: 2 * values.length },
    (_, i) => bytes[4 * (i >> 1) + 2 + (i & 1)] as number,
  );
  const target = new Float32Array(values.length + 1);
  decodeBfloat16(upper, target, 1);
  expect(target).toEqual(Float32Array.of(0, ...values));
});

test("values are written from a given place on", () => {
  const target = new Float32Array(3);
  decodeFloat16(Uint8Array.of(0x00, 0x3c, 0x00, 0xc0), target, 1);
  expect(target).toEqual(Float32Array.of(0, 1, -2));
});
