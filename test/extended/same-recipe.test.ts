/** One recipe, one seed, one warm start: trained in this process and behind our own server, it is the same training. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { behind, compareRuns, trainedRun } from "../../bench/orchestration/curve.ts";
import { loadRecipe } from "../../src/config/load-recipe.ts";
import { warmStartOf } from "../../src/training/warm-start.ts";
import { type ServedModel, serveModel } from "../served-model.ts";

let folder: string;
let server: ServedModel | undefined;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "forager-same-"));
});
afterAll(async () => {
  await server?.close();
  await rm(folder, { recursive: true, force: true });
});

const close = (differences: readonly (readonly [number, number])[], tolerance: number): void => {
  for (const [here, there] of differences)
    expect(Math.abs(here - there)).toBeLessThan(tolerance * Math.max(1, Math.abs(here)));
};

test("GRPO on lab has the same log-probabilities, losses, gradients and rewards on both sides", async () => {
  const overrides = [
    "stages.grpo.steps=4",
    "stages.grpo.algorithm.rejectGroupsWithoutSignal=false",
    // With a small epsilon AdamW's first step is a sign, which turns the last bits of a gradient near 0 into whole steps.
    "stages.grpo.optimizer.epsilon=1e-3",
    "evaluation.n=2",
  ];
  const recipe = await loadRecipe(join(import.meta.dirname, "..", "..", "recipes", "lab.yaml"), {
    overrides,
  });
  const start = warmStartOf(recipe);
  const warm = await trainedRun(start?.recipe ?? recipe, join(folder, "warm"));
  const checkpoint = (await warm.latestCheckpoint())?.path ?? "";
  const rest = start?.rest(checkpoint) ?? recipe;
  server = await serveModel(checkpoint, folder);
  const here = await trainedRun(rest, join(folder, "here"));
  const there = await trainedRun(behind(server.url, rest), join(folder, "there"));
  const { steps, logprobDifference } = await compareRuns(here, there);
  expect(steps.map(({ step }) => step)).toEqual([1, 2, 3, 4]);
  expect(logprobDifference).toBeLessThan(1e-4);
  // Last bits depend on which turns share a batch; later steps may differ by a token, and then by what follows from it.
  const early = steps.slice(0, 2);
  expect(early.map(({ reward: [here, there] }) => here - there)).toEqual([0, 0]);
  close(
    early.flatMap(({ loss, gradientNorm }) => [loss, gradientNorm]),
    1e-4,
  );
  close(
    steps.map(({ reward }) => reward),
    0.15,
  );
  expect(steps.some(({ gradientNorm: [here] }) => here > 1e-3)).toBe(true);
});
