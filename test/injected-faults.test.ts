// What holds in one run with faults of every kind (bench/orchestration/injected-faults.ts): it finishes, every question of every step
// is accounted for exactly once, what failed for good is counted, and nothing is trained on twice. The extended tests do the same
// with a thousand.
import { test } from "vitest";
import { surviveFaults } from "./survive-faults.ts";

test("a run with 140 faults of all kinds finishes, and trains on everything once", async () => {
  await surviveFaults(140);
});
