import { expect, test } from "vitest";
import type { ValueDatum } from "./datum.ts";
import { valueClipFraction, valueDiagnostics } from "./value-diagnostics.ts";

const datum = (
  values: readonly number[],
  returns: readonly number[],
  weights?: readonly number[],
): ValueDatum => ({
  inputs: new Int32Array(values.length),
  weights: Float32Array.from(weights ?? values.map(() => 1)),
  values: Float32Array.from(values),
  returns: Float32Array.from(returns),
});

test.each([
  { name: "values that know every return", values: [0, 1, 1, 0], expected: 1 },
  { name: "values off by a constant", values: [2, 3, 3, 2], expected: 1 },
  { name: "a constant", values: [0.5, 0.5, 0.5, 0.5], expected: 0 },
  { name: "half way", values: [0.25, 0.75, 0.75, 0.25], expected: 0.75 },
  { name: "the opposite", values: [1, 0, 0, 1], expected: -3 },
])("explained variance of $name is $expected", ({ values, expected }) => {
  const [a, b, c, d] = values as [number, number, number, number];
  const data = [datum([a, 99, b], [0, 50, 1], [1, 0, 1]), datum([c, d], [1, 0])];
  const { explainedVariance, returnMean, valueMean } = valueDiagnostics(data);
  expect(explainedVariance).toBeCloseTo(expected, 10);
  expect(returnMean).toBe(0.5);
  expect(valueMean).toBeCloseTo((a + b + c + d) / 4, 10);
});

test("equal returns and no data have nothing to explain", () => {
  expect(valueDiagnostics([datum([1, 2], [1, 1])]).explainedVariance).toBe(0);
  expect(valueDiagnostics([])).toEqual({ explainedVariance: 0, valueMean: 0, returnMean: 0 });
});

test("clipped are the values that moved further than the clip towards their return", () => {
  const loss = { type: "value", clip: 0.5 } as const;
  const data = [datum([0, 0, 0, 0], [2, 2, -2, 2], [1, 1, 1, 0])];
  expect(valueClipFraction(data, [[0.25, 1, 1, 1]], loss)).toBeCloseTo(1 / 3, 10);
  expect(valueClipFraction(data, [[0, 0, 0, 0]], loss)).toBe(0);
  expect(valueClipFraction([], [], loss)).toBe(0);
});
