import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { makeTrajectory } from "../../test/make-trajectory.ts";
import { BudgetSpentError } from "../shared/budget.ts";
import { keepFinished } from "./eval-files.ts";

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "forager-eval-files-"));
});
afterAll(() => rm(folder, { recursive: true }));

test.each([
  [true, "the same command goes on behind them"],
  [false, "a command with --out could be gone on with"],
])("a spent budget promises to go on only where episodes are kept: %s", async (isKept, words) => {
  const spent = new BudgetSpentError("policy", "the budget is spent", { calls: 1, tokens: 0, dollars: 0 });
  const file = { path: join(folder, "x.json") };
  const kept = keepFinished(spent, { finished: [makeTrajectory()], file, name: "m", isKept });
  await expect(kept).rejects.toThrow(words);
  expect(await readdir(folder)).toEqual(["x.unfinished.trajectories.jsonl"]);
});
