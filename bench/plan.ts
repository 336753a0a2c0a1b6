/**
 * What `forager plan` says against what is then measured, in a fresh process for each case. A training step: maximum
 * resident size after two updates, and the second's seconds, of the wall clock and of the processor; the latter can be
 * compared on a busy machine too. A recipe (`plan-recipes.ts`): a short training as a user starts it. The speed of products
 * is probed right before and after.
 */
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { adapterShapes } from "../src/engine/lora.ts";
import { type LoraOptions, loraOptionsSchema } from "../src/engine/lora-options.ts";
import { trainingMemory } from "../src/engine/memory-estimate.ts";
import { type ModelOptions, modelOptionsSchema, parameterCount } from "../src/engine/model-options.ts";
import { trainingSeconds } from "../src/engine/time-estimate.ts";
import { planTraining } from "../src/engine/training-plan.ts";
import { type Bench, integerOptions } from "./bench.ts";
import { formatBytes, markdownTable } from "./measure.ts";
import { type Comparison, type Cost, probedAround, type Speeds } from "./plan-comparison.ts";
import { measureRecipe, recipeCases } from "./plan-recipes.ts";
import { Worker } from "./worker.ts";

interface StepCase {
  readonly name: string;
  readonly model: ModelOptions;
  readonly batch: number;
  readonly length: number;
  readonly momentsOnDisk?: boolean;
  /** Bytes that training may take. */
  readonly memoryBudget?: number;
  /** Adapters beside SmolLM2 of FORAGER_ASSETS. */
  readonly lora?: LoraOptions;
}

const smol = {
  vocabularySize: 49_152,
  width: 576,
  layers: 30,
  heads: 9,
  keyValueHeads: 3,
  feedForward: 1536,
  contextLength: 1024,
  ropeBase: 100_000,
};
const small = {
  ...smol,
  vocabularySize: 8192,
  width: 256,
  layers: 8,
  heads: 8,
  keyValueHeads: 4,
  feedForward: 768,
};
const model135m = modelOptionsSchema.parse(smol);

const stepCases: readonly StepCase[] = [
  { name: "small", model: modelOptionsSchema.parse(small), batch: 4, length: 512 },
  { name: "135m-512", model: model135m, batch: 2, length: 512 },
  { name: "135m-512-disk", model: model135m, batch: 2, length: 512, momentsOnDisk: true },
  { name: "135m-1024", model: model135m, batch: 2, length: 1024 },
  { name: "135m-1024-6gb", model: model135m, batch: 2, length: 1024, memoryBudget: 6e9 },
  {
    name: "135m-1024-lora",
    model: model135m,
    batch: 2,
    length: 1024,
    memoryBudget: 2.5e9,
    lora: loraOptionsSchema.parse({}),
  },
];
/** As in `engine-worker.ts`. */
const workerTokens = 4096;
const names = [...stepCases, ...recipeCases].map(({ name }) => name);

export const planBench: Bench = {
  name: "plan",
  about: "planned against measured memory and time of a training step, and of short trainings of recipes",
  options: `[--threads CORES] [--cases ${names.join(",")}]`,
  async run(args) {
    const { threads, cases } = integerOptions(args, { threads: availableParallelism() });
    const isChosen = ({ name }: { readonly name: string }): boolean =>
      cases === undefined || cases.split(",").includes(name);
    const results: Comparison[] = [];
    for (const one of stepCases.filter(isChosen)) {
      if (one.lora && !process.env.FORAGER_ASSETS)
        process.stderr.write(`${one.name} is left out: set FORAGER_ASSETS to the folder with its model\n`);
      else results.push(await measureStep(one, threads));
    }
    for (const one of recipeCases.filter(isChosen)) results.push(await measureRecipe(one, threads));
    const rows = results.map(({ name, planned, measured }) => [
      name,
      formatBytes(planned.bytes),
      formatBytes(measured.bytes),
      (planned.bytes / measured.bytes).toFixed(2),
      ...compared(planned.seconds, measured.seconds),
      ...compared(planned.processorSeconds, measured.processorSeconds),
    ]);
    const head = ["case", "planned peak", "measured", "ratio", "planned s", "measured s", "ratio"];
    const processor = ["planned processor s", "measured processor s", "ratio"];
    return { markdown: markdownTable([...head, ...processor], rows), data: { threads, results } };
  },
};

function compared(planned: number | undefined, measured: number | undefined): string[] {
  if (planned === undefined || measured === undefined) return ["", "", ""];
  return [planned.toFixed(1), measured.toFixed(1), (planned / measured).toFixed(2)];
}

async function measureStep(one: StepCase, threads: number): Promise<Comparison> {
  const { result: measured, speeds } = await probedAround({ model: one.model, threads }, () =>
    twoUpdates(one, threads),
  );
  return { name: one.name, planned: planStep(one, threads, speeds), measured };
}

/** The second update's time, and the peak of both. */
async function twoUpdates(one: StepCase, threads: number): Promise<Cost> {
  const { model, batch, length, momentsOnDisk, memoryBudget, lora } = one;
  const path = fileURLToPath(new URL("engine-worker.ts", import.meta.url));
  const worker = new Worker(process.execPath, ["--import", "tsx", path]);
  try {
    await worker.request("prepare", {
      model,
      threads,
      ...(momentsOnDisk && { momentsFolder: tmpdir() }),
      ...(memoryBudget && { memoryBudget }),
      ...(lora && { adapted: { source: smolFolder(), lora } }),
    });
    await worker.request("train", { batch, length, steps: 1 });
    const { seconds, processorSeconds } = await worker.request("train", { batch, length, steps: 1 });
    const { bytes } = await worker.request("peak");
    return {
      bytes: Number(bytes),
      seconds: Number(seconds),
      processorSeconds: Number(processorSeconds),
    };
  } finally {
    worker.close();
  }
}

function smolFolder(): string {
  const assets = process.env.FORAGER_ASSETS;
  if (!assets) throw new Error("set FORAGER_ASSETS to the folder that holds SmolLM2-135M-Instruct/");
  return join(assets, "SmolLM2-135M-Instruct");
}

function numbersIn(shapes: Iterable<readonly number[]>): number {
  return [...shapes].reduce((sum, shape) => sum + shape.reduce((a, b) => a * b, 1), 0);
}

function planStep(one: StepCase, threads: number, speeds: Speeds): Cost {
  const { model, batch, length, momentsOnDisk = false, memoryBudget, lora } = one;
  const base = parameterCount(model);
  const adapters = lora && numbersIn(adapterShapes(model, lora).values());
  const shape = { model, parameters: base + (adapters ?? 0), trained: adapters ?? base, momentsOnDisk };
  const limits = memoryBudget === undefined ? { tokenBudget: workerTokens } : { memoryBudget };
  const plan = planTraining(shape, { threads, ...limits });
  const { keptLayers, lanes } = plan;
  const tokens = batch * length;
  const work = { ...plan, tokens, time: length, selected: tokens, keptLayers };
  const atOnce = Math.min(Math.ceil(batch / lanes) * length, Math.max(plan.tokenBudget, length));
  return {
    bytes: trainingMemory(shape, { ...plan, tokens: atOnce, time: length }).peak,
    seconds: trainingSeconds(shape, work, speeds.wall),
    processorSeconds: trainingSeconds(shape, work, speeds.processor),
  };
}
