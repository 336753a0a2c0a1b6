/** For tests: a run of the orchestration bench with injected faults, of which everything must be accounted for. */
import { expect } from "vitest";
import { measureFaults } from "../bench/orchestration/faults.ts";
import { faultKinds } from "../bench/orchestration/injected-faults.ts";
import { onServer } from "../bench/orchestration/setting.ts";

/** Trains until `count` faults were injected, and holds what came of it against what must. */
export async function surviveFaults(count: number): Promise<void> {
  const found = await onServer(128, (there) => measureFaults(there, count));
  expect(Object.keys(found.injected).sort()).toEqual([...faultKinds].sort());
  for (const [kind, times] of Object.entries(found.injected)) expect([kind, times > 0]).toEqual([kind, true]);
  expect(Object.values(found.injected).reduce((sum, times) => sum + times, 0)).toBe(count);
  expect(found).toMatchObject({ missing: 0, askedTwice: 0, trainedTwice: 0, trainedThere: found.trained });
  expect(found.stepsThere).toBe(found.steps);
  expect(found.trajectories).toBe(found.steps * 200);
  expect(found.retried).toBeGreaterThan(0);
  expect(found.made.retries).toBeGreaterThan(0);
}
