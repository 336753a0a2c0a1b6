import { cp, mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parseRecipe } from "../config/load-recipe.ts";
import type { Recipe } from "../config/recipe.ts";
import { InterruptedError } from "../errors.ts";
import type { MetricRow } from "../reporting/metric-row.ts";
import { RunFolder } from "../reporting/run-folder.ts";
import { silentReporter, type TrainingReporter } from "./reporter.ts";
import type { TrainingSummary } from "./train.ts";
import { metricsIn, type RunOptions, runTraining, timeless } from "./training.fixture.ts";

// What this file locks: a stage with `until` ends when patience is over, the next one starts from the weights that were
// best on validation, and both survive an interruption and a kill at any place bit for bit. An untrained model earns
// nothing; the decay of weights moves it, and the KL term gives it gradients.
const recipeOf = (second: string): Recipe =>
  parseRecipe(
    `
name: tiny
seed: 3
data: { type: world, world: { name: lab, entities: 60, hops: [1, 2], trainQuestions: 60, validationQuestions: 7, testQuestions: 12 } }
environment: { codec: compact, prompt: bare, passageTemplate: text, k: 1, maxSearches: 2, maxTurnTokens: 8, maxObservationTokens: 24 }
model: { type: fresh, layers: 1, width: 16, heads: 2, keyValueHeads: 1, feedForward: 24, contextLength: 128, vocabularySize: 300 }
engine: { type: embedded, threads: 1 }
stages:
  - type: reinforcement
    name: search
    steps: 9
    until: { metric: em, everySteps: 1, patience: 2, n: 5 }
    questionsPerStep: 3
    schedule: { learningRate: 0.01, warmupSteps: 4 }
    optimizer: { weightDecay: 20 }
    reward: { type: retrievalRecall }
    algorithm: { groupSize: 3, minibatchSize: 5, kl: { coefficient: 0.1 }, rejectGroupsWithoutSignal: false }
  - type: reinforcement
    name: answer
    steps: 2
    questionsPerStep: 3
    schedule: { learningRate: 0.01, warmupSteps: 4 }
    optimizer: { weightDecay: 20 }
    reward: { type: format }
    algorithm: { groupSize: 3, minibatchSize: 5, kl: { coefficient: 0.1 }, rejectGroupsWithoutSignal: false }
    ${second}
evaluation: { n: 5 }
checkpoint: { everySteps: 50, keep: 1 }
`,
    { file: "tiny.yaml" },
  );
const recipe = recipeOf("");

let folder: string;
let whole: readonly MetricRow[];
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "forager-stages-"));
  await run("whole", recipe);
  whole = await metricsOf("whole");
});
afterAll(async () => await rm(folder, { recursive: true, force: true }));

describe("a stage with until", () => {
  it("ends after the measurements that patience allows; an untrained model gives every one the same score", async () => {
    expect(placesOf(whole)).toEqual(["search 1", "search 2", "search 3", "answer 1", "answer 2"]);
    expect(whole.map((row) => row["validation/n"])).toEqual([5, 5, 5, undefined, undefined]);
    expect(await readdir(join(folder, "whole", "data"))).toContain("validation.jsonl");
  });

  it("hands on the weights of its best step, the first of equals, though only the newest checkpoint is kept", async () => {
    const chosen = await weightsOf("whole", "reference/answer");
    expect(chosen).toEqual(await weightsAfter(1));
    expect(chosen).not.toEqual(await weightsAfter(3));
  });

  it("starts warm-up, optimiser and reference of the next stage anew", () => {
    expect(whole.map((row) => row["optimizer/learningRate"])).toEqual([0.0025, 0.005, 0.0075, 0.0025, 0.005]);
  });

  it("evaluates the chosen weights when it is the last", async () => {
    await run("only", { ...recipe, stages: recipe.stages.slice(0, 1) });
    const [after] = (await (await RunFolder.open(join(folder, "only"))).readEvaluations()).filter(
      ({ name }) => name === "after",
    );
    expect(after).toMatchObject({ stage: "search", step: 1 });
  });
});

describe("carry", () => {
  it("goes on with the schedule behind the chosen step, with the moments and with the reference", async () => {
    await run("carried", recipeOf("carry: [optimizer, schedule, reference]"));
    const rows = await metricsOf("carried");
    expect(rows.map((row) => row["optimizer/learningRate"])).toEqual([0.0025, 0.005, 0.0075, 0.005, 0.0075]);
    expect(await readdir(join(folder, "carried", "reference"))).toEqual(["search"]);
    expect(rows[3]?.["kl/reference"]).toBeGreaterThan(whole[3]?.["kl/reference"] as number);
  });

  it("keeps the moments alone where only they are carried", async () => {
    await run("moments", recipeOf("carry: [optimizer]"));
    const rows = await metricsOf("moments");
    expect(rows.map((row) => row["optimizer/learningRate"])).toEqual(
      whole.map((row) => row["optimizer/learningRate"]),
    );
    expect(timeless(rows.slice(0, 3))).toEqual(timeless(whole.slice(0, 3)));
    expect(await weightsOf("moments", "checkpoints/12")).not.toEqual(
      await weightsOf("whole", "checkpoints/12"),
    );
  });

  it("survives an interruption", async () => {
    const what = recipeOf("carry: [optimizer, schedule, reference]");
    await interrupted("carried-twice", what, { step: ["answer", 1] });
    await run("carried-twice", what, { resume: true });
    expect(timeless(await metricsOf("carried-twice"))).toEqual(timeless(await metricsOf("carried")));
  });
});

describe("resuming gives the same numbers", () => {
  it.each<[string, number]>([
    ["search", 1],
    ["search", 2],
    ["search", 3],
    ["answer", 1],
  ])("after an interruption behind step %s %i", async (stage, step) => {
    const name = `interrupted-${stage}-${step}`;
    await interrupted(name, recipe, { step: [stage, step] });
    await run(name, recipe, { resume: true });
    expect(timeless(await metricsOf(name))).toEqual(timeless(whole));
    expect(await weightsOf(name, "checkpoints/12")).toEqual(await weightsOf("whole", "checkpoints/12"));
  });

  it.each(["search-validation-1", "search-validation-3", "after"])(
    "after an interruption in the evaluation %s",
    async (evaluation) => {
      const name = `interrupted-in-${evaluation}`;
      await interrupted(name, recipe, { evaluation });
      await run(name, recipe, { resume: true });
      expect(timeless(await metricsOf(name))).toEqual(timeless(whole));
      expect(await weightsOf(name, "checkpoints/12")).toEqual(await weightsOf("whole", "checkpoints/12"));
    },
  );

  it("after a kill between the last measurement and the choice", async () => {
    const dense = { ...recipe, checkpoint: { everySteps: 1, keep: 99 } };
    await run("dense", dense);
    const killed = join(folder, "killed");
    await cp(join(folder, "dense"), killed, { recursive: true });
    // The choice has the count 10, the second stage 11 and 12; the rows of the first stage are all there.
    for (const count of [10, 11, 12])
      await rm(join(killed, "checkpoints", String(count)), { recursive: true });
    await run("killed", dense, { resume: true });
    expect(timeless(await metricsOf("killed"))).toEqual(timeless(await metricsOf("dense")));
    expect(await weightsOf("killed", "checkpoints/12")).toEqual(await weightsOf("dense", "checkpoints/12"));
  });

  it("after a kill that left no checkpoint but the first", async () => {
    const killed = join(folder, "killed-early");
    await cp(join(folder, "dense"), killed, { recursive: true });
    for (const count of await readdir(join(killed, "checkpoints")))
      if (count !== "0") await rm(join(killed, "checkpoints", count), { recursive: true });
    const dense = { ...recipe, checkpoint: { everySteps: 1, keep: 99 } };
    await run("killed-early", dense, { resume: true });
    expect(timeless(await metricsOf("killed-early"))).toEqual(timeless(await metricsOf("dense")));
  });
});

/** Weights after so many steps of the first stage, trained alone and to its end. */
async function weightsAfter(steps: number): Promise<Buffer> {
  const [search] = recipe.stages;
  if (search?.type !== "reinforcement") throw new Error("the first stage reinforces");
  const { until: _, ...rest } = search;
  const name = `alone-${steps}`;
  await run(name, { ...recipe, stages: [{ ...rest, steps }] });
  return await weightsOf(name, `checkpoints/${steps}`);
}

function weightsOf(name: string, place: string): Promise<Buffer> {
  return readFile(join(folder, name, place, "model.safetensors"));
}

/** Runs until a step is done or an evaluation has begun, and expects the interruption. */
async function interrupted(
  name: string,
  what: Recipe,
  when: { readonly step?: readonly [string, number]; readonly evaluation?: string },
): Promise<void> {
  const abort = new AbortController();
  const reporter: TrainingReporter = {
    ...silentReporter,
    stepDone: ({ stage, step }) => {
      if (stage === when.step?.[0] && step === when.step[1]) abort.abort();
    },
    evaluationProgress: (progress) => {
      if (progress.name === when.evaluation) abort.abort();
    },
  };
  await expect(run(name, what, { signal: abort.signal, reporter })).rejects.toThrow(InterruptedError);
}

function run(name: string, what: Recipe, options?: RunOptions): Promise<TrainingSummary> {
  return runTraining(join(folder, name), what, options);
}

function metricsOf(name: string): Promise<MetricRow[]> {
  return metricsIn(join(folder, name));
}

function placesOf(rows: readonly MetricRow[]): string[] {
  return rows.map(({ stage, step }) => `${stage} ${step}`);
}
