import { cp, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parseRecipe } from "../config/load-recipe.ts";
import type { Recipe } from "../config/recipe.ts";
import type { Stage, SupervisedStage } from "../config/stage-options.ts";
import { FileError, InterruptedError, TrainingError } from "../errors.ts";
import type { MetricRow } from "../reporting/metric-row.ts";
import { RunFolder } from "../reporting/run-folder.ts";
import { silentReporter, type TrainingReporter } from "./reporter.ts";
import type { TrainingSummary } from "./train.ts";
import { metricsIn, type RunOptions, runTraining, timeless } from "./training.fixture.ts";

// What this file locks: equal seeds give equal runs; a run that was interrupted, or killed at any file operation
// after a checkpoint, goes on with the same next batch and the same numbers; nothing is written over a run.
const yaml = `
name: tiny
seed: 3
data: { type: world, world: { name: lab, entities: 60, hops: [1, 2], trainQuestions: 60, testQuestions: 12 } }
environment: { codec: compact, prompt: bare, passageTemplate: text, k: 1, maxSearches: 2, maxTurnTokens: 24, maxObservationTokens: 24 }
model: { type: fresh, layers: 1, width: 16, heads: 2, keyValueHeads: 1, feedForward: 24, contextLength: 192, vocabularySize: 300 }
engine: { type: embedded, threads: 1 }
stages:
  - { type: supervised, name: warm-up, steps: 3, batchSize: 4, schedule: { learningRate: 0.01 } }
  - type: reinforcement
    name: grpo
    steps: 4
    questionsPerStep: 3
    schedule: { learningRate: 0.01 }
    reward: { type: format, structure: 0.2, finalFormat: 0.1, retrieval: 0 }
    algorithm: { groupSize: 3, minibatchSize: 5, kl: { coefficient: 0.1 }, rejectGroupsWithoutSignal: false }
evaluation: { n: 5, everySteps: 2 }
`;
const recipe = parseRecipe(yaml, { file: "tiny.yaml" });

let folder: string;
let whole: readonly MetricRow[];
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "forager-train-"));
  await run("whole", recipe);
  whole = await metricsOf("whole");
});
afterAll(async () => await rm(folder, { recursive: true, force: true }));

describe("train", () => {
  it("writes a row for each step, every evaluation, the world's files and a report", async () => {
    expect(whole.map(({ stage, step }) => `${stage} ${step}`)).toEqual([
      ...[1, 2, 3].map((step) => `warm-up ${step}`),
      ...[1, 2, 3, 4].map((step) => `grpo ${step}`),
    ]);
    expect(await readdir(join(folder, "whole", "evaluation"))).toEqual([
      "after.json",
      "before.json",
      "grpo-2.json",
    ]);
    expect(await readdir(join(folder, "whole", "data"))).toEqual([
      "corpus.jsonl",
      "test.jsonl",
      "train.jsonl",
    ]);
    expect(await readFile(join(folder, "whole", "report.html"), "utf8")).toContain("<html");
  });

  it("samples what it trains on: log-probabilities agree before each step's first update", () => {
    for (const row of whole.filter(({ stage }) => stage === "grpo"))
      expect(row["parity/maxLogprobDifference"]).toBeLessThan(1e-3);
  });

  it("trains on what weights of 8 bits sampled, and says how far they are from those that are trained", async () => {
    await run(
      "int8",
      parseRecipe(yaml.replace("threads: 1", "threads: 1, samplingWeights: int8"), { file: "int8.yaml" }),
    );
    const rows = (await metricsOf("int8")).filter(({ stage }) => stage === "grpo");
    expect(rows).toHaveLength(4);
    for (const row of rows) {
      expect(row["parity/maxLogprobDifference"]).toBeGreaterThan(1e-5);
      expect(row["parity/klDivergence"]).toBeLessThan(0.01);
    }
  });

  it("gives the same numbers for the same seed, and others for another", async () => {
    await run("again", recipe);
    expect(timeless(await metricsOf("again"))).toEqual(timeless(whole));
    await run("other", { ...recipe, seed: 4 });
    expect(timeless(await metricsOf("other"))).not.toEqual(timeless(whole));
  });

  it.each([
    ["warm-up", 2],
    ["grpo", 1],
    ["grpo", 3],
  ])("stops after %s %i when interrupted and goes on with the same numbers", async (stage, step) => {
    const name = `interrupted-${stage}-${step}`;
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

  it("with moments on disk makes the same checkpoints bit for bit, interrupted too, and leaves nothing else", async () => {
    const onDisk = parseRecipe(yaml.replace("threads: 1", "threads: 1, optimizerState: disk"), {
      file: "disk.yaml",
    });
    const abort = new AbortController();
    const stopping: TrainingReporter = {
      ...silentReporter,
      stepDone: ({ stage, step }) => {
        if (stage === "grpo" && step === 2) abort.abort();
      },
    };
    await expect(run("disk", onDisk, { signal: abort.signal, reporter: stopping })).rejects.toThrow(
      InterruptedError,
    );
    await run("disk", onDisk, { resume: true });
    expect(timeless(await metricsOf("disk"))).toEqual(timeless(whole));
    const bytes = (name: string, file: string): Promise<Buffer> =>
      readFile(join(folder, name, "checkpoints", "7", file));
    for (const file of ["model.safetensors", "optimizer.safetensors", "optimizer.json"])
      expect(await bytes("disk", file)).toEqual(await bytes("whole", file));
    expect(await readdir(join(folder, "disk"))).toEqual(await readdir(join(folder, "whole")));
  });

  it.each(["before", "grpo-2", "after"])(
    "stops in the evaluation %s when interrupted and makes up for it",
    async (evaluation) => {
      const name = `interrupted-in-${evaluation}`;
      const abort = new AbortController();
      const stopping: TrainingReporter = {
        ...silentReporter,
        evaluationProgress: (progress) => {
          if (progress.name === evaluation) abort.abort();
        },
      };
      await expect(run(name, recipe, { signal: abort.signal, reporter: stopping })).rejects.toThrow(
        InterruptedError,
      );
      await run(name, recipe, { resume: true });
      expect(timeless(await metricsOf(name))).toEqual(timeless(whole));
      expect(await evaluationsOf(name)).toEqual(await evaluationsOf("whole"));
    },
  );

  it("drops the torn step of a kill between two checkpoints and does it again", async () => {
    const sparse = { ...recipe, checkpoint: { everySteps: 3, keep: 9 } };
    await run("sparse", sparse);
    const killed = join(folder, "killed");
    await cp(join(folder, "sparse"), killed, { recursive: true });
    // As after a kill in step 2 of grpo: rows and trajectories are there, the checkpoints of 6 and 7 steps are not.
    for (const step of [6, 7]) await rm(join(killed, "checkpoints", String(step)), { recursive: true });
    await run("killed", sparse, { resume: true });
    expect(timeless(await metricsOf("killed"))).toEqual(timeless(whole));
    const records = await (await RunFolder.open(killed)).readTrajectories("grpo");
    expect(records.map(({ step }) => step)).toEqual([0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3]);
  });

  it("stops when a loss is no number, and says which checkpoint is good", async () => {
    const [warmUp, ...rest] = recipe.stages as [SupervisedStage, ...Stage[]];
    const schedule = { ...warmUp.schedule, learningRate: 1e30 };
    const wild = { ...recipe, stages: [{ ...warmUp, schedule }, ...rest] };
    const error = await run("wild run", wild).then(
      () => expect.fail("a training without numbers went on"),
      (reason: unknown) => reason as Error,
    );
    expect(error).toBeInstanceOf(TrainingError);
    expect(error.message).toMatch(/^training stopped in step \d of warm-up: .* no number any more/);
    const [, checkpoint = ""] = /The last good checkpoint is ([^;]+);/.exec(error.message) ?? [];
    expect(await readdir(checkpoint)).toContain("model.safetensors");
    expect(error.message).toContain(`a lower learning rate (--set 'model=${checkpoint}'), see `);
    // Who comes back later sees the report, not the terminal.
    expect(await readFile(join(folder, "wild run", "report.html"), "utf8")).toMatch(
      /The training stopped in step \d of warm-up: .* no number any more .* The last good checkpoint is /,
    );
    expect((await metricsOf("wild run")).at(-1)?.["gradient/norm"]).toBeNaN();
    // One step at this rate ruins the weights, which shows in the next; good are those before it.
    expect(checkpoint).toBe(join(folder, "wild run", "checkpoints", "0"));
  });

  it("neither trains nor evaluates again when it is resumed after its end", async () => {
    const said: string[] = [];
    const listening: TrainingReporter = {
      ...silentReporter,
      message: (text) => said.push(text),
      evaluationProgress: () => expect.fail("evaluated again"),
    };
    await run("whole", recipe, { resume: true, reporter: listening });
    expect(said).toContain("all steps are done; forager eval scores the run again");
    expect(await metricsOf("whole")).toEqual(whole);
  });

  it("does not go on over another corpus than it began with, and leaves the run as it was", async () => {
    const data = join(folder, "own");
    await cp(join(folder, "whole", "data"), data, { recursive: true });
    const own = parseRecipe(
      yaml
        .replace(
          /^data:.*$/m,
          "data: { type: files, corpus: corpus.jsonl, questions: { train: train.jsonl, evaluation: test.jsonl } }",
        )
        .replace(/^ {2}- \{ type: supervised.*\n/m, ""),
      { file: join(data, "own.yaml") },
    );
    await run("own-run", own);
    await rm(join(folder, "own-run", "checkpoints", "4"), { recursive: true });
    const before = await stateOf("own-run");
    const lines = (await readFile(join(data, "corpus.jsonl"), "utf8")).trim().split("\n");
    await writeFile(join(data, "corpus.jsonl"), `${[...lines.slice(1), lines[0]].join("\n")}\n`);
    await expect(run("own-run", own, { resume: true })).rejects.toThrow(
      /began with something else: retriever\.\w+Hash was/,
    );
    expect(await stateOf("own-run")).toEqual(before);
    expect(await (await RunFolder.open(join(folder, "own-run"))).isBeingWritten()).toBe(false);
  });

  it("writes the files of its world when it is resumed after a kill that came before them", async () => {
    const cut = join(folder, "cut");
    await cp(join(folder, "whole"), cut, { recursive: true });
    await rm(join(cut, "index"), { recursive: true });
    await rm(join(cut, "data", "test.jsonl"));
    await run("cut", recipe, { resume: true });
    for (const part of ["data", "index"])
      expect(await readdir(join(cut, part))).toEqual(await readdir(join(folder, "whole", part)));
    for (const file of ["data/test.jsonl", "index/index.json"])
      expect(await readFile(join(cut, file))).toEqual(await readFile(join(folder, "whole", file)));
  });

  it("refuses a folder that exists and leaves it as it was", async () => {
    const before = await readFile(join(folder, "whole", "metrics.jsonl"), "utf8");
    await expect(run("whole", recipe)).rejects.toThrow(FileError);
    expect(await readFile(join(folder, "whole", "metrics.jsonl"), "utf8")).toBe(before);
  });
});

function run(name: string, what: Recipe, options?: RunOptions): Promise<TrainingSummary> {
  return runTraining(join(folder, name), what, options);
}

function metricsOf(name: string): Promise<MetricRow[]> {
  return metricsIn(join(folder, name));
}

/** What a run that is not gone on with keeps as it is. */
async function stateOf(name: string): Promise<object> {
  const read = (file: string): Promise<string> => readFile(join(folder, name, file), "utf8");
  return {
    metrics: await read("metrics.jsonl"),
    contract: await read("contract.json"),
    checkpoints: await readdir(join(folder, name, "checkpoints")),
  };
}

async function evaluationsOf(name: string): Promise<object[]> {
  const stored = await (await RunFolder.open(join(folder, name))).readEvaluations();
  return stored.map(({ name, stage, step, result: { summary } }) => ({
    name,
    stage,
    step,
    em: summary.overall.em,
  }));
}
