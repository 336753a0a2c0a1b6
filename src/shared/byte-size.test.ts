import { expect, test } from "vitest";
import { byteSize } from "./byte-size.ts";

test.each([
  [12, 12],
  ["12B", 12],
  ["2GB", 2e9],
  ["1.5 MB", 1.5e6],
  ["2GiB", 2 ** 31],
  ["0.1kB", 100],
])("%s is %d bytes", (size, bytes) => {
  expect(byteSize(size)).toBe(bytes);
});

test.each(["", "GB", "2", "2 gb", "-1GB", "1e3B", "2GB of memory"])("%j is no size", (size) => {
  expect(byteSize(size)).toBeUndefined();
});
