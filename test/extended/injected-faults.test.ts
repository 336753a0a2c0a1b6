// A thousand faults of every kind in one run: see test/injected-faults.test.ts.
import { test } from "vitest";
import { surviveFaults } from "../survive-faults.ts";

test("a run with 1,000 faults of all kinds finishes, and trains on everything once", async () => {
  await surviveFaults(1000);
});
