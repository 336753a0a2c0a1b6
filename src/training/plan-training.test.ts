import { describe, expect, test } from "vitest";
import { tinyRecipe } from "../../test/tiny-recipe.ts";
import { loadRecipe, parseRecipe } from "../config/load-recipe.ts";
import type { Recipe } from "../config/recipe.ts";
import { knownModels } from "../engine/known-models.ts";
import { parameterCount } from "../engine/model-options.ts";
import { EngineError } from "../errors.ts";
import {
  checkpointBytes,
  diskBytes,
  type MemoryPlan,
  memoryProblem,
  planMemory,
  planStages,
  programBytes,
  requireMemory,
} from "./plan-training.ts";

const tiny = (overrides: readonly string[] = []): Recipe =>
  parseRecipe(tinyRecipe, { file: "tiny.yaml", overrides });
const smol = knownModels[0]?.model as (typeof knownModels)[0]["model"];
const speed = { training: 1e11, sampling: 5e10 };

describe("the plan of a recipe", () => {
  test("counts weights, gradients and moments of all that is trained, and 12 bytes of each in a checkpoint", () => {
    const { shape, training } = planMemory(tiny(), smol);
    expect(shape.trained).toBe(shape.parameters);
    expect(training.memory.weights).toBe(4 * shape.parameters);
    expect(training.memory.moments).toBe(8 * shape.trained);
    expect(checkpointBytes(tiny(), shape)).toBe(12 * shape.trained);
  });

  test("takes 8 bytes less for each trained number with moments on disk, which are there instead", () => {
    const [memory, disk] = ["memory", "disk"].map((place) => {
      const recipe = tiny([`engine.optimizerState=${place}`]);
      const plan = planMemory(recipe, smol);
      return { peak: plan.training.memory.peak, disk: diskBytes(recipe, plan.shape) };
    });
    expect((memory?.peak as number) - (disk?.peak as number)).toBe(8 * parameterCount(smol));
    expect((disk?.disk as number) - (memory?.disk as number)).toBe(8 * parameterCount(smol));
  });

  test("counts a critic with a trunk of its own: 16 bytes for each trained number, and a second pass", async () => {
    const file = "recipes/lab-ppo.yaml";
    const [own, shared] = await Promise.all(
      ["own", "shared"].map(async (trunk) => {
        const recipe = await loadRecipe(file, { overrides: [`stages.ppo.algorithm.critic.trunk=${trunk}`] });
        return { recipe, plan: planMemory(recipe, smol) };
      }),
    );
    const trained = parameterCount(smol);
    expect((own?.plan.peak as number) - (shared?.plan.peak as number)).toBe(16 * trained);
    const seconds = (type: "ppo" | "rejectionSampling"): number => {
      const { recipe, plan } = own as { recipe: Recipe; plan: MemoryPlan };
      const stages = recipe.stages.map((stage) =>
        stage.type !== "reinforcement" || type === "ppo"
          ? stage
          : { ...stage, algorithm: { type, groupSize: 1, threshold: 1, epochs: 1 } },
      ) as Recipe["stages"];
      return planStages({ ...recipe, stages }, plan, speed).at(-1)?.secondsPerStep as number;
    };
    expect(seconds("ppo")).toBeGreaterThan(1.5 * seconds("rejectionSampling"));
  });

  test("has large models trained and sampled in turns, small ones keep what both need", () => {
    const { peak, training, sampler, copies } = planMemory(tiny(), smol);
    const { activations, workspace } = training.memory;
    const resident = programBytes + training.memory.peak - activations - workspace + copies;
    expect(peak).toBeCloseTo(resident + Math.max(activations + workspace, sampler), 0);
    const small = planMemory(tiny(), { ...smol, layers: 1, width: 32, feedForward: 32, vocabularySize: 300 });
    expect(small.peak).toBe(programBytes + small.training.memory.peak + small.copies + small.sampler);
  });

  test("refuses adapters of a rank that the training would refuse", async () => {
    const recipe = await loadRecipe("recipes/smollm2-135m.yaml", { overrides: ["engine.lora.rank=4000"] });
    expect(() => planMemory(recipe, smol)).toThrow(/rank 4000 .* lower the rank to at most 192/);
  });

  test("counts the model that adapters are merged into to sample, and the keys and values that may be kept", async () => {
    const sampler = async (...overrides: string[]): Promise<number> =>
      planMemory(await loadRecipe("recipes/smollm2-135m.yaml", { overrides }), smol).sampler;
    const whole = await sampler();
    const projections = parameterCount(smol) - smol.vocabularySize * smol.width - 61 * smol.width;
    expect((await sampler("engine.lora.rank=4")) - whole).toBeCloseTo(4 * projections, 0);
    expect(whole - (await sampler("engine.cacheMemory=1GB"))).toBe(0.5e9);
    expect(await sampler("engine.samplingWeights=int4")).toBeLessThan(whole);
  });

  test("of episodes that were shorter than they may be tells what those took", () => {
    const recipe = tiny();
    const { peak, training } = planMemory(recipe, smol);
    const shorter = planMemory(recipe, smol, 100);
    expect(shorter.peak).toBeLessThan(peak);
    expect(shorter.training).toMatchObject({
      tokenBudget: training.tokenBudget,
      keptLayers: training.keptLayers,
    });
  });

  test("counts no more tokens at once than all episodes of a step may have", () => {
    const peak = (episodes: number): number =>
      planMemory(tiny([`stages.warm-up.batchSize=${episodes}`, "engine.tokenBudget=4096"]), smol).training
        .memory.peak;
    expect(peak(5)).toBeGreaterThan(peak(4));
    // An episode may have 536 tokens: eight are more than a micro-batch.
    expect(peak(8)).toBe(peak(80));
    expect(peak(8)).toBeGreaterThan(peak(7));
  });

  test("of the recipe for a real model stays within 6 GB", async () => {
    const recipe = await loadRecipe("recipes/smollm2-135m.yaml");
    const plan = planMemory(recipe, smol);
    expect(plan.training.fits).toBe(true);
    expect(plan.peak).toBeLessThan(5.7e9);
  });

  test("spares 8 bytes for each trained number where the moments lie on disk", async () => {
    const plans = await Promise.all(
      ["memory", "disk"].map(async (state) => {
        const overrides = ["engine.memoryBudget=20GB", `engine.optimizerState=${state}`];
        return planMemory(await loadRecipe("recipes/smollm2-135m.yaml", { overrides }), smol);
      }),
    );
    const [inMemory, onDisk] = plans.map(({ training }) => training.memory.peak) as [number, number];
    expect(inMemory - onDisk).toBe(8 * parameterCount(smol));
  });

  test("refuses a budget that is too small with the numbers and what to change", () => {
    const recipe = tiny(["engine.memoryBudget=1GB"]);
    const refuse = (): void => requireMemory(recipe, planMemory(recipe, smol));
    expect(refuse).toThrow(EngineError);
    expect(refuse).toThrow(
      /training needs at least \d\.\d\d GB \(weights 538 MB, .*\), engine\.memoryBudget is 1\.00 GB; raise it to that, or keep moments on disk \(engine\.optimizerState\), leave engine\.tokenBudget out, lower environment/,
    );
    const trained = { ...recipe, model: { type: "pretrained" as const, source: "smollm2-135m" } };
    expect(memoryProblem(trained, planMemory(trained, smol))).toContain("train adapters (engine.lora)");
    expect(memoryProblem(tiny(), planMemory(tiny(), smol))).toBeUndefined();
  });

  test("refuses keys and values that one episode may exceed, which would end the run in the middle", () => {
    const problem = (cacheMemory: string): string | undefined => {
      const recipe = tiny([`engine.cacheMemory=${cacheMemory}`]);
      return memoryProblem(recipe, planMemory(recipe, smol));
    };
    expect(problem("1MB")).toMatch(
      /one episode .* take \d+ MB, engine.cacheMemory is 1 MB; raise it to that, or/,
    );
    expect(problem("1GB")).toBeUndefined();
  });

  test("refuses what is more than the machine has", () => {
    const recipe = tiny();
    const plan = { ...planMemory(recipe, smol), available: 1e9 };
    expect(() => requireMemory(recipe, plan)).toThrow(
      /this machine has 1\.00 GB; lower engine\.memoryBudget/,
    );
  });

  test("has a time for each stage that grows with its work", () => {
    const times = (overrides: readonly string[]): number[] => {
      const recipe = tiny(overrides);
      return planStages(recipe, planMemory(recipe, smol), speed).map(({ secondsPerStep }) => secondsPerStep);
    };
    const [supervised, reinforcement] = times([]) as [number, number];
    expect(supervised).toBeGreaterThan(0);
    expect(reinforcement).toBeGreaterThan(0);
    const [more] = times(["stages.warm-up.batchSize=8"]) as [number];
    expect(more).toBeGreaterThan(1.5 * supervised);
  });
});
