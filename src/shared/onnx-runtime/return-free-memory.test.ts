import { expect, test } from "vitest";
import { returnFreeMemory } from "./return-free-memory.ts";

test("may be called at any time, on any system, and takes nothing that is in use", () => {
  const array = new Float32Array(1e6).fill(7);
  returnFreeMemory();
  returnFreeMemory();
  expect(array.every((value) => value === 7)).toBe(true);
});
