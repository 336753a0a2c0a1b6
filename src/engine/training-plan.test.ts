import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { knownModels } from "./known-models.ts";
import { trainingMemory } from "./memory-estimate.ts";
import { parameterCount } from "./model-options.ts";
import { planTraining } from "./training-plan.ts";

const model = knownModels.find(({ name }) => name === "smollm2-135m")
  ?.model as (typeof knownModels)[0]["model"];
const parameters = parameterCount(model);
const whole = { model, parameters, trained: parameters };
const adapters = { model, parameters: parameters + 5e6, trained: 5e6 };

describe("a plan of training", () => {
  test("of SmolLM2-135M with 2 × 1024 tokens fits into 6 GB, of adapters into 2.5 GB", () => {
    const full = planTraining(whole, { memoryBudget: 6e9, longestSequence: 1024 });
    expect(full).toMatchObject({ fits: true, keptLayers: model.layers });
    expect(full.tokenBudget).toBeGreaterThanOrEqual(2048);
    expect(planTraining(adapters, { memoryBudget: 2.5e9, longestSequence: 1024 }).fits).toBe(true);
  });

  test("takes fewer tokens at once before it computes a layer twice, and says when nothing fits", () => {
    const limits = { longestSequence: 1024 };
    const plenty = planTraining(whole, limits);
    expect(plenty).toMatchObject({ tokenBudget: 4096, keptLayers: model.layers, fits: true });
    const tight = planTraining(whole, { ...limits, memoryBudget: 3.2e9 });
    expect(tight).toMatchObject({ tokenBudget: 1024, fits: true });
    expect(tight.keptLayers).toBeLessThan(model.layers);
    const none = planTraining(whole, { ...limits, memoryBudget: 1e9 });
    expect(none).toMatchObject({ tokenBudget: 1024, keptLayers: 0, fits: false });
  });

  test("keeps all and goes side by side where all that training holds is little, and the budget allows it", () => {
    const small = {
      ...model,
      vocabularySize: 1024,
      width: 128,
      layers: 4,
      heads: 4,
      keyValueHeads: 4,
      feedForward: 512,
    };
    const size = parameterCount(small);
    const shape = { model: small, parameters: size, trained: size };
    const limits = { longestSequence: 256, threads: 2 };
    const plan = planTraining(shape, limits);
    expect(plan).toMatchObject({ inOneRun: true, lanes: 2, keptLayers: 4, tokenBudget: 512 });
    const single = planTraining(shape, { ...limits, threads: 1 });
    expect(plan.memory.gradients).toBe(2 * single.memory.gradients);
    expect(plan.memory.activations).toBe(2 * single.memory.activations);
    const without = planTraining(shape, { ...limits, memoryBudget: plan.memory.peak - 1 });
    expect(without).toMatchObject({ inOneRun: false, lanes: 2, keptLayers: 4, fits: true });
    expect(planTraining(shape, { ...limits, tokenBudget: 300 }).tokenBudget).toBe(300);
    expect(planTraining(whole, { longestSequence: 1024 }).inOneRun).toBe(false);
  });

  test("computes two micro-batches of a large model at once where the budget allows it", () => {
    const limits = { longestSequence: 1024, threads: 4 };
    const plan = planTraining(whole, limits);
    expect(plan).toMatchObject({ inOneRun: false, lanes: 2, keptLayers: model.layers, tokenBudget: 2048 });
    expect(planTraining(whole, { ...limits, threads: 1 }).lanes).toBe(1);
    expect(plan.keepsAttention).toBe(true);
    const without = planTraining(whole, { ...limits, memoryBudget: 1.5 * plan.memory.peak - 1 });
    expect(without).toMatchObject({ keepsAttention: false, lanes: 2, tokenBudget: 2048, fits: true });
    // Gradients of its own for the second, before fewer layers keep what they need.
    const tight = planTraining(whole, { ...limits, memoryBudget: 4e9 });
    expect(tight).toMatchObject({ lanes: 1, keptLayers: model.layers, tokenBudget: 1024, fits: true });
  });

  test("keeps to the tokens of a micro-batch that are asked for", () => {
    const plan = planTraining(whole, { tokenBudget: 700, longestSequence: 512, memoryBudget: 3e9 });
    expect(plan.tokenBudget).toBe(700);
    expect(plan.fits).toBe(true);
  });

  test("never exceeds a budget that it fits, whatever the budget", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 12_000 }),
        fc.integer({ min: 16, max: 4000 }),
        (megabytes, time) => {
          const memoryBudget = 1e6 * megabytes;
          const plan = planTraining(whole, { memoryBudget, longestSequence: time });
          const { tokenBudget, keptLayers, keepsAttention, inOneRun, lanes } = plan;
          const tokens = Math.max(tokenBudget, time);
          const microBatch = { tokens, time, keptLayers, keepsAttention, inOneRun, lanes };
          expect(trainingMemory(whole, microBatch).peak).toBe(plan.memory.peak);
          expect(plan.fits).toBe(plan.memory.peak <= memoryBudget);
        },
      ),
    );
  });
});
