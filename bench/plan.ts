/**
 * What `forager plan` says of a training step against what is then measured, in a fresh process for each case: maximum
 * resident size after two updates, and the seconds of the second. Speed of products is probed right before and after.
 */
import { availableParallelism } from "node:os";
import { performance } from "node:perf_hooks";
import { fileURLToPath } from "node:url";
import { trainingMemory } from "../src/engine/memory-estimate.ts";
import { type ModelOptions, modelOptionsSchema, parameterCount } from "../src/engine/model-options.ts";
import { productRate } from "../src/engine/product-probe.ts";
import { trainingSeconds } from "../src/engine/time-estimate.ts";
import { type Bench, integerOptions } from "./bench.ts";
import { formatBytes, markdownTable } from "./measure.ts";
import { Worker } from "./worker.ts";

interface PlanCase {
  readonly name: string;
  readonly model: ModelOptions;
  readonly batch: number;
  readonly length: number;
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

const cases: readonly PlanCase[] = [
  { name: "small", model: modelOptionsSchema.parse(small), batch: 4, length: 512 },
  { name: "135m-512", model: modelOptionsSchema.parse(smol), batch: 2, length: 512 },
  { name: "135m-1024", model: modelOptionsSchema.parse(smol), batch: 2, length: 1024 },
];

export const planBench: Bench = {
  name: "plan",
  about: "planned against measured memory and time of a training step",
  options: `[--threads CORES] [--cases ${cases.map(({ name }) => name).join(",")}]`,
  async run(args) {
    const { threads, cases: names } = integerOptions(args, { threads: availableParallelism() });
    const chosen = cases.filter(({ name }) => names === undefined || names.split(",").includes(name));
    const results = [];
    for (const one of chosen) results.push(await measure(one, threads));
    const rows = results.map(({ name, planned, measured }) => [
      name,
      formatBytes(planned.bytes),
      formatBytes(measured.bytes),
      (planned.bytes / measured.bytes).toFixed(2),
      planned.seconds.toFixed(1),
      measured.seconds.toFixed(1),
      (planned.seconds / measured.seconds).toFixed(2),
    ]);
    const head = ["case", "planned peak", "measured", "ratio", "planned s", "measured s", "ratio"];
    return { markdown: markdownTable(head, rows), data: { threads, results } };
  },
};

interface Cost {
  readonly bytes: number;
  readonly seconds: number;
}

async function measure(
  { name, model, batch, length }: PlanCase,
  threads: number,
): Promise<{ readonly name: string; readonly planned: Cost; readonly measured: Cost }> {
  const before = await probe(model, threads);
  const path = fileURLToPath(new URL("engine-worker.ts", import.meta.url));
  const worker = new Worker(process.execPath, ["--import", "tsx", path]);
  try {
    await worker.request("prepare", { model, threads });
    const step = async (): Promise<number> =>
      Number((await worker.request("train", { batch, length, steps: 1 })).seconds);
    await step();
    const seconds = await step();
    const bytes = Number((await worker.request("peak")).bytes);
    const rate = (before + (await probe(model, threads))) / 2;
    return { name, planned: plan(model, { batch, length, rate }), measured: { bytes, seconds } };
  } finally {
    worker.close();
  }
}

function probe({ width, feedForward }: ModelOptions, threads: number): Promise<number> {
  const shape = { rows: 1024, inner: width, columns: feedForward };
  return productRate(shape, { threads, now: () => performance.now(), seconds: 2 });
}

function plan(
  model: ModelOptions,
  { batch, length, rate }: { readonly batch: number; readonly length: number; readonly rate: number },
): Cost {
  const parameters = parameterCount(model);
  const shape = { model, parameters, trained: parameters };
  const tokens = batch * length;
  const { layers: keptLayers } = model;
  const work = { tokens, time: length, selected: tokens, keptLayers };
  return {
    bytes: trainingMemory(shape, { tokens, time: length, keptLayers }).peak,
    seconds: trainingSeconds(shape, work, { training: rate, sampling: rate }),
  };
}
