import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { runForTest } from "../../../test/run-cli.ts";
import { tinyRecipe } from "../../../test/tiny-recipe.ts";

let folder: string;
let recipe: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "forager-plan-"));
  recipe = join(folder, "tiny.yaml");
  await writeFile(recipe, tinyRecipe);
});
afterAll(async () => await rm(folder, { recursive: true, force: true }));

test("a recipe is planned by memory, time, tokens and disk", async () => {
  const { code, json } = await runForTest("plan", recipe, "--json");
  expect(code).toBe(0);
  const plan = json as Record<string, number>;
  expect(plan).toMatchObject({ fits: true, problem: null, microBatchTokens: 1024, keptLayers: 1, layers: 1 });
  for (const key of ["peakBytes", "secondsPerStep", "checkpointBytes", "diskBytes", "trainingPeakBytes"])
    expect(plan[key]).toBeGreaterThan(0);
  expect(plan.peakBytes).toBeGreaterThan(plan.trainingPeakBytes as number);
  expect(plan.stages).toMatchObject([
    { name: "warm-up", type: "supervised", steps: 2, sampledTokensPerStep: 0 },
    { name: "grpo", type: "reinforcement", steps: 2 },
  ]);
});

test("a model that exists is planned from its headers", async () => {
  const model = fileURLToPath(new URL("../../../test/golden/gguf/llama.gguf", import.meta.url));
  const text = tinyRecipe.replace(/model:\n( {2}.*\n)+/, `model: ${model}\n`);
  const path = join(folder, "pretrained.yaml");
  await writeFile(path, text);
  const whole = await runForTest("plan", path, "--json");
  const adapters = await runForTest("plan", path, "--json", "--set", "engine.lora.rank=2");
  expect([whole.code, adapters.code]).toEqual([0, 0]);
  const trained = ({ json }: { readonly json?: unknown }): number =>
    (json as { readonly trainedParameters: number }).trainedParameters;
  expect(trained(adapters)).toBeLessThan(trained(whole));
});

test("too little memory is refused by plan and by train, with the numbers and what to change", async () => {
  const set = ["--set", "engine.memoryBudget=100MB"];
  const planned = await runForTest("plan", recipe, ...set, "--json");
  expect(planned.code).toBe(1);
  const reason = /training needs at least \d+ MB \(weights .*\), engine\.memoryBudget is 100 MB; raise it/;
  expect((planned.json as { readonly problem: string }).problem).toMatch(reason);
  const trained = await runForTest("train", recipe, "--out", join(folder, "run"), ...set);
  expect(trained.code).toBe(1);
  expect(trained.stderr).toMatch(reason);
});

test("the recipe for a real model is planned within 6 GB without downloading it, and passes a dry run", async () => {
  const path = fileURLToPath(new URL("../../../recipes/smollm2-135m.yaml", import.meta.url));
  const { code, json } = await runForTest("plan", path, "--json");
  const plan = json as Record<string, number>;
  expect(plan.peakBytes).toBeLessThan(6e9);
  expect(code).toBe((plan.peakBytes as number) > (plan.availableBytes as number) ? 1 : 0);
  expect(plan.parameters).toBe(134_515_008);
  expect(plan.processorSecondsPerStep).toBeGreaterThan(0);
  const dry = await runForTest("train", path, "--dry-run", "--json");
  expect(dry).toMatchObject({ code: 0 });
  expect(JSON.stringify(dry.json)).toContain('"cacheMemory":"1.5GB"');
});

test("a recipe is planned alone", async () => {
  const { code, stderr } = await runForTest("plan", recipe, "passages.jsonl");
  expect(code).toBe(2);
  expect(stderr).toContain("a recipe is planned alone");
});
