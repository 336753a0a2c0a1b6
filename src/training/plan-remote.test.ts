import { describe, expect, test } from "vitest";
import { parseRecipe } from "../../test/parse-recipe.ts";
import { measuredSteps, skyrlRollouts, skyrlUpdate, verlEvaluation } from "./measured-throughputs.ts";
import { planRemote } from "./plan-remote.ts";

function recipe({ model = "Qwen/Qwen2.5-7B-Instruct", stage = "", rank = 0, questions = 64 } = {}) {
  return parseRecipe(`
engine: { type: tinker, url: "http://127.0.0.1:8000", baseModel: ${model}, rank: ${rank} }
model: { type: remote }
evaluation: { n: 1000, everySteps: 50 }
stages:
  - { type: reinforcement, name: grpo, steps: 100, questionsPerStep: ${questions}, schedule: { learningRate: 0.1 }, algorithm: { groupSize: 8 }, ${stage} }
`);
}

const setting = { dollarsPerGpuHour: 2 };

describe("a plan of an engine elsewhere", () => {
  test("of what was measured is what was measured", () => {
    const plan = planRemote(recipe(), setting);
    expect(plan).toMatchObject({ billions: 7, gpus: 8 });
    expect(plan.stages).toMatchObject([{ name: "grpo", trajectoriesPerStep: 512, updateSeconds: 133 }]);
    // 310.1 of 400.7 s were rollouts there, 90.6 s the rest.
    const rollouts = (133 * 310.1) / 90.6;
    expect(plan.stages[0]?.rolloutSeconds[1]).toBeCloseTo(rollouts);
    expect(plan.stages[0]?.stepSeconds[0]).toBe(133);
    expect(plan.stages[0]?.stepSeconds[1]).toBeCloseTo(133 + rollouts);
    // Before, after, and after 50 of 100 steps; 3 B on the same number of GPUs.
    expect(plan.evaluations).toBe(3);
    expect(plan.evaluationSeconds).toBeCloseTo((3 * 1000 * 6000 * 7) / 51_713 / 3);
    expect(plan.hours[0]).toBeCloseTo((100 * 133 + plan.evaluationSeconds) / 3600);
    expect(plan.dollars[0]).toBeCloseTo(plan.hours[0] * 8 * 2);
  });

  test("grows with model and trajectories and shrinks with GPUs", () => {
    const [base] = planRemote(recipe(), setting).stages;
    const [larger] = planRemote(recipe({ model: "Qwen2.5-14B" }), setting).stages;
    const [more] = planRemote(recipe({ questions: 128 }), setting).stages;
    const [spread] = planRemote(recipe(), { ...setting, gpus: 16 }).stages;
    const update = base?.updateSeconds as number;
    expect([larger, more, spread].map((stage) => stage?.updateSeconds)).toEqual([
      2 * update,
      2 * update,
      update / 2,
    ]);
  });

  test("takes the longer of update and rollouts where sampling runs ahead", () => {
    const [stage] = planRemote(recipe({ stage: "maxStaleness: 1" }), setting).stages;
    expect(stage?.stepSeconds).toEqual([133, stage?.rolloutSeconds[1]]);
  });

  test("counts the GPUs that weights need", () => {
    expect(planRemote(recipe(), setting).leastGpus).toBe(4); // 7e9 × 18 bytes are 126 GB
    expect(planRemote(recipe({ rank: 32 }), setting).leastGpus).toBe(1);
    expect(planRemote(recipe({ model: "Qwen2.5-72B" }), setting)).toMatchObject({ leastGpus: 32, gpus: 32 });
  });

  test("says which stages it leaves out", () => {
    const [first] = recipe().stages;
    const warmUp = { type: "supervised", name: "warm-up" } as unknown as NonNullable<typeof first>;
    expect(planRemote(recipe(), setting).leftOut).toEqual([]);
    const both = { ...recipe(), stages: [warmUp, first as NonNullable<typeof first>] };
    expect(planRemote(both, setting)).toMatchObject({ stages: [{ name: "grpo" }], leftOut: ["warm-up"] });
  });

  test("needs a name that tells the size", () => {
    expect(() => planRemote(recipe({ model: "tiny" }), setting)).toThrow(/engine.baseModel one such as/);
  });
});

test("every measurement names its source", () => {
  for (const { source } of [skyrlUpdate, skyrlRollouts, verlEvaluation, ...measuredSteps])
    expect(source.length).toBeGreaterThan(20);
});
