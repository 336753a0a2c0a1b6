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
  expect(plan).toMatchObject({ fits: true, problem: null, microBatchTokens: 512, keptLayers: 1, layers: 1 });
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

test("models that stay loaded beside the trained one are part of the plan", async () => {
  const model =
    "{ type: fresh, layers: 1, width: 16, heads: 2, keyValueHeads: 2, feedForward: 32, contextLength: 256, vocabularySize: 300 }";
  const set = ["--set", `ranker={ candidates: 4, model: ${model} }`];
  const [alone, both] = [
    await runForTest("plan", recipe, "--json"),
    await runForTest("plan", recipe, ...set, "--json"),
  ];
  expect(both.code, both.stderr).toBe(0);
  const peak = ({ json }: typeof alone): number => (json as { readonly peakBytes: number }).peakBytes;
  const { companions } = both.json as { readonly companions: readonly { readonly bytes: number }[] };
  expect(companions).toMatchObject([{ part: "ranker" }]);
  // Bytes are rounded one by one.
  expect(Math.abs(peak(both) - peak(alone) - (companions[0]?.bytes ?? 0))).toBeLessThanOrEqual(1);
  expect(alone.json).toMatchObject({ companions: [] });
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

const cluster = fileURLToPath(
  new URL("../../../recipes/cluster/search-r1-grpo-7b-skyrl.yaml", import.meta.url),
);

test("an engine elsewhere is planned in GPUs, hours and money from what others measured", async () => {
  const planned = ["plan", cluster, "--gpus", "16", "--gpu-price", "2"];
  const { code, json } = await runForTest(...planned, "--json");
  expect(code).toBe(0);
  const plan = json as { hours: number[]; dollars: number[]; rows: { source: string }[] };
  expect(json).toMatchObject({ isEstimate: true, billions: 7, gpus: 16, price: { dollars: 2 } });
  expect(plan.dollars[0]).toBeCloseTo((plan.hours[0] as number) * 32);
  const { stdout } = await runForTest(...planned);
  for (const { source } of plan.rows) expect(stdout).toContain(source);
});

test("flags of an engine elsewhere are refused for one that is here", async () => {
  const { code, stderr } = await runForTest("plan", recipe, "--gpus", "2");
  expect(code).toBe(2);
  expect(stderr).toContain("engine elsewhere");
});
