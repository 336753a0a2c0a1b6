import { describe, expect, test } from "vitest";
import { tinyRecipe } from "../../test/tiny-recipe.ts";
import { parseRecipe } from "../config/load-recipe.ts";
import type { Recipe } from "../config/recipe.ts";
import { knownModels } from "../engine/known-models.ts";
import { EngineError } from "../errors.ts";
import { checkpointBytes, memoryProblem, planMemory, planStages, requireMemory } from "./plan-training.ts";

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
    expect(checkpointBytes(shape)).toBe(12 * shape.trained);
  });

  test("refuses a budget that is too small with the numbers and what to change", () => {
    const recipe = tiny(["engine.memoryBudget=1GB"]);
    const refuse = (): void => requireMemory(recipe, planMemory(recipe, smol));
    expect(refuse).toThrow(EngineError);
    expect(refuse).toThrow(
      /training needs at least \d\.\d\d GB \(weights 538 MB, .*\), engine\.memoryBudget is 1\.00 GB; raise it to that, or train adapters \(engine\.lora\)/,
    );
    expect(memoryProblem(tiny(), planMemory(tiny(), smol))).toBeUndefined();
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
