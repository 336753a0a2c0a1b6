import { expect, test } from "vitest";
import { Closers } from "./closers.ts";

test("closes in reverse order, once, and everything even when one part fails", async () => {
  const closed: string[] = [];
  const closers = new Closers();
  closers.defer(() => void closed.push("first"));
  closers.defer(() => {
    throw new Error("stuck");
  });
  closers.defer(async () => void closed.push("last"));
  await expect(closers.close()).rejects.toThrow("stuck");
  expect(closed).toEqual(["last", "first"]);
  await closers.close();
  expect(closed).toEqual(["last", "first"]);
});
