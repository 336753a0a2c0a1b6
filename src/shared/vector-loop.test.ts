import { expect, test } from "vitest";
import { compileVectorLoop } from "./vector-loop.ts";

const numbers = (length: number, from: number): Float32Array =>
  Float32Array.from({ length }, (_, index) => Math.sin(from + index) + 1.5);

test.each([1, 3, 4, 8192, 8193, 20_001])(
  "a loop over %d numbers computes what float32 arithmetic does",
  (length) => {
    const loop = compileVectorLoop({
      arrays: ["x", "y", "z"],
      scalars: ["a", "b"],
      assignments: [
        ["x", [[{ sqrt: "x" }, "*", "a"], "-", ["y", "/", "b"]]],
        ["y", ["x", "+", "y"]],
        ["z", ["z", "+", "z"]],
      ],
      results: ["x", "y"],
    });
    const [x, y, z] = [numbers(length, 0), numbers(length, 1), numbers(length, 2)];
    const [a, b] = [Math.fround(0.3), Math.fround(1.7)];
    const { fround } = Math;
    const newX = x.map((value, i) => fround(fround(Math.sqrt(value)) * a) - fround((y[i] as number) / b));
    const newY = y.map((value, i) => value + (newX[i] as number));
    loop({ x, y, z }, { a, b });
    expect(x).toEqual(newX);
    expect(y).toEqual(newY);
    // What is no result stays as it was.
    expect(z).toEqual(numbers(length, 2));
  },
);

test("a loop works on the part of an array that a view shows, and no further", () => {
  const whole = Float32Array.of(1, 2, 3, 4, 5, 6);
  const double = compileVectorLoop({
    arrays: ["x"],
    scalars: [],
    assignments: [["x", ["x", "+", "x"]]],
    results: ["x"],
  });
  double({ x: whole.subarray(1, 4) }, {});
  expect([...whole]).toEqual([1, 4, 6, 8, 5, 6]);
});

test("a name that is neither an array nor a scalar is a defect", () => {
  const loop = { arrays: ["x"], scalars: [], assignments: [["x", "y"]], results: ["x"] } as const;
  expect(() => compileVectorLoop(loop)).toThrow("no array or scalar y");
});
