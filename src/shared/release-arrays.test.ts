import { setImmediate } from "node:timers/promises";
import { expect, test } from "vitest";
import { releaseArrays } from "./release-arrays.ts";

test("arrays that are given back are empty at once, and their memory is free soon after", async () => {
  const before = process.memoryUsage().arrayBuffers;
  const array = new Float32Array(50e6);
  const view = array.subarray(10, 20);
  expect(process.memoryUsage().arrayBuffers).toBeGreaterThan(before + 150e6);
  releaseArrays([array, view]);
  expect([array.length, view.length]).toEqual([0, 0]);
  while (process.memoryUsage().arrayBuffers > before + 150e6) await setImmediate();
  releaseArrays([array]);
});
