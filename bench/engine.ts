/**
 * The embedded engine against PyTorch 2 on the same CPU: training tokens per second (forward, backward, clipping,
 * AdamW) and greedy decoding tokens per second against transformers `generate`, fp32, random weights, equal thread
 * counts, interleaved rounds. Decoding is what every token after the first takes, `generate` includes the prompts; decoding
 * with weights of 8 and 4 bits is set against the same peer. Training is also set against `torch.compile` and bf16 autocast, and against the fastest
 * matrix product of this machine. Python is found by FORAGER_PYTHON (default `python3`); without torch only our
 * side is measured, and the table says so.
 */
import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";
import type { Bench } from "./bench.ts";
import { integerOptions } from "./bench.ts";
import { type EngineCase, engineCases } from "./engine-cases.ts";
import { trainingOperations } from "./matrix-product.ts";
import {
  type Comparison,
  formatBytes,
  formatNumber,
  formatSummary,
  interleaveAll,
  markdownTable,
  ratios,
  type Side,
  type Summary,
  summarise,
} from "./measure.ts";
import { Worker, WorkerError } from "./worker.ts";

interface Result extends Comparison {
  readonly case: string;
  /** Rounds of the peer's other ways to train, by name. */
  readonly variants: Readonly<Record<string, readonly number[]>>;
  /** Of a training: useful operations per second over those of the fastest matrix product. */
  readonly shareOfProduct: number | undefined;
  readonly ourPeakBytes: number;
  readonly peerPeakBytes: number | undefined;
}

interface Peer {
  readonly python: string;
  readonly name: string;
}

export const engineBench: Bench = {
  name: "engine",
  about: "training and decoding tokens/s against PyTorch 2 and transformers on CPU (FORAGER_PYTHON)",
  options: `[--rounds 5] [--threads CORES] [--cases ${engineCases.map((c) => c.name).join(",")}]`,
  async run(args) {
    const options = integerOptions(args, { rounds: 5, threads: availableParallelism() });
    const cases = chooseCases(options.cases);
    const peer = await findPeer();
    const results: Result[] = [];
    const fastestProduct = cases.some(({ work }) => work.op === "train")
      ? await measureProduct(options.threads, peer)
      : Number.NaN;
    for (const chosen of cases) {
      const result = await measureCase(chosen, { ...options, fastestProduct }, peer);
      process.stderr.write(`${markdownRow(result).join(" | ")}\n`);
      results.push(result);
    }
    const { threads } = options;
    const data = { threads, peer: peer?.name, fastestProduct, results: results.map(withRatios) };
    return { markdown: render(results, { threads, fastestProduct }, peer), data };
  },
};

function chooseCases(names: string | undefined): readonly EngineCase[] {
  if (names === undefined) return engineCases;
  return names.split(",").map((name) => {
    const found = engineCases.find((candidate) => candidate.name === name);
    if (found === undefined)
      throw new Error(`Unknown case ${name}; there are ${engineCases.map((c) => c.name).join(", ")}`);
    return found;
  });
}

async function findPeer(): Promise<Peer | undefined> {
  const python = process.env.FORAGER_PYTHON ?? "python3";
  const worker = startPeer(python);
  try {
    const { name } = await worker.request("info");
    return { python, name: String(name) };
  } catch (error) {
    if (!(error instanceof WorkerError)) throw error;
    process.stderr.write(
      `No comparison: ${python} cannot run PyTorch and transformers (${error.message.split("\n")[0]}). Set FORAGER_PYTHON to a Python that has both.\n`,
    );
    return undefined;
  } finally {
    worker.close();
  }
}

const local = (path: string): string => fileURLToPath(new URL(path, import.meta.url));
const startPeer = (python: string): Worker => new Worker(python, [local("peers/torch_engine.py")]);
const startOurs = (): Worker => new Worker(process.execPath, ["--import", "tsx", local("engine-worker.ts")]);

/** The peer's other ways to train. */
const trainingModes = { "torch.compile": "compile", "bf16 autocast": "bf16" };

/** Operations per second of the faster of both sides' matrix products. */
async function measureProduct(threads: number, peer: Peer | undefined): Promise<number> {
  const workers = [startOurs(), ...(peer === undefined ? [] : [startPeer(peer.python)])];
  try {
    const rates: number[] = [];
    for (const worker of workers) rates.push(Number((await worker.request("product", { threads })).rate));
    return Math.max(...rates);
  } finally {
    for (const worker of workers) worker.close();
  }
}

interface Setting {
  readonly rounds: number;
  readonly threads: number;
  readonly fastestProduct: number;
}

/** Each case has fresh processes on both sides, so that its peak memory is its own. */
async function measureCase(
  { name, about, model, work, precision = "f32" }: EngineCase,
  { rounds, threads, fastestProduct }: Setting,
  peer: Peer | undefined,
): Promise<Result> {
  process.stderr.write(`${name}: ${about}\n`);
  const modes = Object.entries(peer !== undefined && work.op === "train" ? trainingModes : {});
  const workers: Record<string, Worker> = { ours: startOurs() };
  if (peer !== undefined)
    for (const side of ["peer", ...modes.map(([mode]) => mode)]) workers[side] = startPeer(peer.python);
  try {
    const sides: Record<string, Side> = {};
    for (const [side, worker] of Object.entries(workers)) {
      await worker.request("prepare", { model, threads, samplingWeights: precision });
      const { op, ...rest } = { ...work, ...(side in trainingModes && { mode: new Map(modes).get(side) }) };
      sides[side] = async () => {
        const { seconds, tokens } = await worker.request(op, rest);
        return { seconds: Number(seconds), tokens: Number(tokens) };
      };
    }
    const { ours = [], peer: plain = [], ...variants } = await interleaveAll(rounds, sides);
    const peak = async (side: string): Promise<number> =>
      Number((await workers[side]?.request("peak"))?.bytes);
    const rate = summarise(ours).median;
    return {
      case: name,
      ours,
      peer: plain,
      variants,
      shareOfProduct:
        work.op === "train" ? (rate * trainingOperations(model, work.length)) / fastestProduct : undefined,
      ourPeakBytes: await peak("ours"),
      peerPeakBytes: peer && (await peak("peer")),
    };
  } finally {
    for (const worker of Object.values(workers)) worker.close();
  }
}

/** Our rate over the peer's and over each of its other ways, round by round: median, least and most; nothing that was not measured. */
function withRatios(result: Result): Result & { readonly ratios: Readonly<Record<string, Summary>> } {
  const { ours, peer, variants } = result;
  const measured = Object.entries({ peer, ...variants }).filter(([, rates]) => rates.length > 0);
  const ratiosOf = measured.map(([side, rates]) => [side, summarise(ratios({ ours, peer: rates }))] as const);
  return { ...result, ratios: Object.fromEntries(ratiosOf) };
}

function markdownRow(result: Result): string[] {
  const { ours, peer, shareOfProduct } = result;
  const { ratios: all } = withRatios(result);
  const ratio = (side: string): string => {
    const summary = all[side];
    return summary === undefined ? "" : formatSummary(summary);
  };
  return [
    result.case,
    formatSummary(summarise(ours)),
    peer.length > 0 ? formatSummary(summarise(peer)) : "not measured",
    ratio("peer"),
    ...Object.keys(trainingModes).map(ratio),
    shareOfProduct === undefined ? "" : `${Math.round(100 * shareOfProduct)} %`,
    formatBytes(result.ourPeakBytes),
    result.peerPeakBytes === undefined ? "" : formatBytes(result.peerPeakBytes),
  ];
}

function render(
  results: readonly Result[],
  { threads, fastestProduct }: Pick<Setting, "threads" | "fastestProduct">,
  peer: Peer | undefined,
): string {
  const others = Object.keys(trainingModes).map((mode) => `ratio to ${mode}`);
  const rates = ["Forager tokens/s", "peer tokens/s", "ratio", ...others, "share of peak product"];
  const head = ["case", ...rates, "Forager peak", "peer peak"];
  const product = Number.isNaN(fastestProduct)
    ? ""
    : ` Fastest fp32 product of two 2,048 × 2,048 matrices: ${formatNumber(fastestProduct / 1e9)} Gflop/s.`;
  const note = `Median (min-max) of interleaved rounds, ${threads} threads; peer: ${peer?.name ?? "none (PyTorch not found)"}.${product}`;
  return `${markdownTable(head, results.map(markdownRow))}\n\n${note}`;
}
