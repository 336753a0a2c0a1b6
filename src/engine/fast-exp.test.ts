import fc from "fast-check";
import { expect, test } from "vitest";
import { exponential } from "./fast-exp.ts";

test("differs from Math.exp by less than 1e-9 of the value", () => {
  fc.assert(
    fc.property(fc.double({ min: -700, max: 700, noNaN: true }), (x) => {
      expect(Math.abs(exponential(x) / Math.exp(x) - 1)).toBeLessThan(1e-9);
    }),
    { numRuns: 2000 },
  );
});

test("is 1 at 0, and 0 where nothing is left", () => {
  expect([exponential(0), exponential(-800), exponential(Number.NEGATIVE_INFINITY)]).toEqual([1, 0, 0]);
});
