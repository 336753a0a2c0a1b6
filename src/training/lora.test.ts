// A training of adapters from a recipe to its end: what is kept, that it goes on with the same numbers, and that other
// commands' way of opening a model takes its checkpoints.
import { cp, mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { parseRecipe } from "../config/load-recipe.ts";
import type { Recipe } from "../config/recipe.ts";
import { CheckpointError, InterruptedError } from "../errors.ts";
import type { MetricRow } from "../reporting/metric-row.ts";
import { RunFolder } from "../reporting/run-folder.ts";
import { openEngine } from "./open-engine.ts";
import { silentReporter, type TrainingReporter } from "./reporter.ts";
import type { TrainingSummary } from "./train.ts";
import { metricsIn, type RunOptions, runTraining, timeless } from "./training.fixture.ts";

const common = `
name: tiny
seed: 3
data: { type: world, world: { name: lab, entities: 60, hops: [1, 2], trainQuestions: 60, testQuestions: 12 } }
environment: { codec: compact, prompt: bare, passageTemplate: text, k: 1, maxSearches: 2, maxTurnTokens: 24, maxObservationTokens: 24 }
evaluation: { n: 5 }
`;
const base = parseRecipe(
  `${common}
model: { type: fresh, layers: 1, width: 16, heads: 2, keyValueHeads: 1, feedForward: 24, contextLength: 192, vocabularySize: 300 }
engine: { threads: 1 }
stages:
  - { type: supervised, name: warm-up, steps: 1, batchSize: 4, schedule: { learningRate: 0.01 } }
`,
  { file: "base.yaml" },
);
const adapted = `${common}
model: BASE
engine: { threads: 1, lora: { rank: 2, alpha: 4, targets: [q_proj, v_proj, down_proj] } }
stages:
  - { type: supervised, name: warm-up, steps: 2, batchSize: 4, schedule: { learningRate: 0.01 } }
  - type: reinforcement
    name: grpo
    steps: 3
    questionsPerStep: 3
    schedule: { learningRate: 0.01 }
    algorithm: { groupSize: 3, minibatchSize: 5, kl: { coefficient: 0.1 }, rejectGroupsWithoutSignal: false }
`;

let scratch: string;
let recipe: Recipe;
let whole: readonly MetricRow[];
beforeAll(async () => {
  scratch = await mkdtemp(join(tmpdir(), "forager-train-lora-"));
  await run("base", base);
  const source = (await RunFolder.open(join(scratch, "base")).then((it) => it.latestCheckpoint()))?.path;
  recipe = parseRecipe(adapted.replace("BASE", source as string), { file: "adapted.yaml" });
  await run("whole", recipe);
  whole = await metricsOf("whole");
});
afterAll(() => rm(scratch, { recursive: true, force: true }));

describe("training adapters", () => {
  test("samples from the merged weights what the adapters are trained on", () => {
    const steps = whole.filter(({ stage }) => stage === "grpo");
    expect(steps).toHaveLength(3);
    for (const row of steps) expect(row["parity/maxLogprobDifference"]).toBeLessThan(1e-3);
  });

  test("keeps adapters alone in its checkpoints and as the reference of the KL term", async () => {
    const { path } = await latest("whole");
    for (const folder of [path, join(scratch, "whole", "reference", "grpo")]) {
      const files = await readdir(folder);
      expect(files).toContain("adapter_model.safetensors");
      expect(files).not.toContain("model.safetensors");
    }
  });

  test.each([
    ["warm-up", 1],
    ["grpo", 2],
  ])("goes on after an interruption in %s %i with the same numbers", async (stage, step) => {
    const name = `interrupted-${stage}`;
    const abort = new AbortController();
    const stopping: TrainingReporter = {
      ...silentReporter,
      stepDone: (row) => {
        if (row.stage === stage && row.step === step) abort.abort();
      },
    };
    await expect(run(name, recipe, { signal: abort.signal, reporter: stopping })).rejects.toThrow(
      InterruptedError,
    );
    await run(name, recipe, { resume: true });
    expect(timeless(await metricsOf(name))).toEqual(timeless(whole));
  });

  test("leaves checkpoints that open as models, until their base changes", async () => {
    const { path } = await latest("whole");
    const engine = await openEngine(path, recipe);
    const [completion] = await engine
      .policy()
      .complete([{ text: "Q", seed: 1 }], { maxTokens: 4, temperature: 1, topP: 1, topK: 0, stop: [] });
    await engine.close();
    expect(completion?.tokens?.length).toBeGreaterThan(0);
    const { path: source } = await latest("base");
    const first = join(scratch, "base", "checkpoints");
    const [other] = (await readdir(first)).filter((name) => !source.endsWith(name)).sort();
    await cp(join(first, other as string, "model.safetensors"), join(source, "model.safetensors"));
    await expect(openEngine(path, recipe)).rejects.toThrow(CheckpointError);
    await expect(openEngine(path, recipe)).rejects.toThrow("holds adapters for other weights");
  });
});

function run(name: string, what: Recipe, options?: RunOptions): Promise<TrainingSummary> {
  return runTraining(join(scratch, name), what, options);
}

function metricsOf(name: string): Promise<MetricRow[]> {
  return metricsIn(join(scratch, name));
}

async function latest(name: string): Promise<{ readonly path: string }> {
  const checkpoint = await (await RunFolder.open(join(scratch, name))).latestCheckpoint();
  if (checkpoint === undefined) throw new Error(`${name} has no checkpoint`);
  return checkpoint;
}
