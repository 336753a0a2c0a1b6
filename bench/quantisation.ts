/**
 * What sampling with weights of 8 and 4 bits costs and gains on a real model: differences of log-probabilities over a
 * text, and tokens/s for one and for sixteen sequences, interleaved; for one sequence beside llama.cpp with the same
 * file (a Python with llama-cpp-python in FORAGER_LLAMA_PYTHON; without it only our side is measured).
 */
import { readdir } from "node:fs/promises";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { type SamplingWeights, samplingWeights } from "../src/engine/weight-quantization.ts";
import type { Bench } from "./bench.ts";
import { formatSummary, markdownTable, summarise } from "./measure.ts";
import { Worker } from "./worker.ts";

const windows = 16;
const batches = [1, 16] as const;
const peerName = "llama.cpp";

interface Loss {
  readonly weights: SamplingWeights;
  /** Tokens compared. */
  readonly count: number;
  /** Mean absolute difference of the log-probability of the text's next token, nats. */
  readonly difference: number;
  /** Mean KL(f32 || rounded) of the next token's distribution, nats. */
  readonly divergence: number;
  /** Mean negative log-probability of the text, nats per token. */
  readonly exactLoss: number;
  readonly roundedLoss: number;
  /** Share of positions with the same likeliest token. */
  readonly agreed: number;
}

interface Speed {
  readonly side: string;
  readonly batch: number;
  /** Tokens/s of each round. */
  readonly rates: number[];
  /** Tokens for each second of a processor, which other programs on the machine disturb less. */
  readonly busyRates: number[];
}

export const quantisationBench: Bench = {
  name: "quantisation",
  about: "sampling with int8 and int4 weights: loss in log-probability and tokens/s (FORAGER_LLAMA_PYTHON)",
  options:
    "[--model FORAGER_ASSETS/SmolLM2-135M-Instruct] [--text README.md] [--length 128] [--rounds 5] [--tokens 64]",
  async run(args) {
    const options = readOptions(args);
    const worker = new Worker(process.execPath, ["--import", "tsx", local("quantisation-worker.ts")]);
    const peer = await startPeer(options);
    try {
      const { model, text, threads, length } = options;
      await worker.request("prepare", { model, text, threads });
      const losses: Loss[] = [];
      for (const weights of samplingWeights.slice(1)) {
        const loss = await worker.request("loss", { weights, windows, length });
        losses.push({ weights, ...(loss as unknown as Omit<Loss, "weights">) });
        process.stderr.write(`${JSON.stringify(losses.at(-1))}\n`);
      }
      const speeds: Speed[] = [];
      for (const batch of batches) speeds.push(...(await measureSpeed(worker, batch, { ...options, peer })));
      const data = { ...options, peer: peer?.name, losses, speeds };
      return { markdown: render(losses, speeds, peer?.name), data };
    } finally {
      worker.close();
      peer?.worker.close();
    }
  },
};

interface Options {
  readonly model: string;
  readonly text: string;
  readonly threads: number;
  /** Tokens of a window of text. */
  readonly length: number;
  readonly rounds: number;
  readonly tokens: number;
}

const local = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

function readOptions(args: readonly string[]): Options {
  const names = ["model", "text", "length", "rounds", "tokens", "threads"] as const;
  const options = Object.fromEntries(names.map((name) => [name, { type: "string" as const }]));
  const values = parseArgs({ args: [...args], options }).values as Record<string, string | undefined>;
  const number = (name: string, standard: number): number => {
    const value = Number(values[name] ?? standard);
    if (!Number.isInteger(value) || value < 1)
      throw new Error(`--${name} must be a whole number of at least 1`);
    return value;
  };
  const assets = process.env.FORAGER_ASSETS;
  const model = values.model ?? (assets && join(assets, "SmolLM2-135M-Instruct"));
  if (!model) throw new Error("name a model with --model, or set FORAGER_ASSETS");
  return {
    model,
    text: values.text ?? local("../README.md"),
    threads: number("threads", availableParallelism()),
    length: number("length", 128),
    rounds: number("rounds", 5),
    tokens: number("tokens", 64),
  };
}

interface Peer {
  readonly worker: Worker;
  readonly name: string;
}

async function startPeer({ model, threads }: Options): Promise<Peer | undefined> {
  const python = process.env.FORAGER_LLAMA_PYTHON;
  if (python === undefined) {
    process.stderr.write("No comparison: FORAGER_LLAMA_PYTHON names no Python with llama-cpp-python.\n");
    return undefined;
  }
  const worker = new Worker(python, [local("peers/llama.py")]);
  const { name } = await worker.request("info");
  const file = model.endsWith(".gguf")
    ? model
    : join(model, (await readdir(model)).find((entry) => entry.endsWith(".gguf")) ?? "");
  const { note } = await worker.request("prepare", { model: file, threads });
  return { worker, name: note === undefined ? String(name) : `${name} ${note}` };
}

/** Rounds of all precisions and of the peer in turn; one round before them does not count. */
async function measureSpeed(
  worker: Worker,
  batch: number,
  { rounds, tokens, peer }: Options & { readonly peer: Peer | undefined },
): Promise<Speed[]> {
  const prompt = 16;
  const { ids } = await worker.request("ids");
  const sides = new Map<string, () => Promise<Readonly<Record<string, unknown>>>>(
    samplingWeights.map((weights) => [
      weights,
      () => worker.request("decode", { weights, batch, prompt, tokens }),
    ]),
  );
  if (peer && batch === 1)
    sides.set(peerName, () =>
      peer.worker.request("decode", { ids: (ids as number[]).slice(0, prompt), tokens }),
    );
  const speeds = [...sides.keys()].map((side): Speed => ({ side, batch, rates: [], busyRates: [] }));
  for (let round = 0; round <= rounds; round++) {
    for (const speed of speeds) {
      const measured = await sides.get(speed.side)?.();
      if (round === 0 || measured === undefined) continue;
      speed.rates.push(Number(measured.tokens) / Number(measured.seconds));
      speed.busyRates.push(Number(measured.tokens) / Number(measured.processorSeconds));
    }
  }
  return speeds;
}

function render(losses: readonly Loss[], speeds: readonly Speed[], peer: string | undefined): string {
  const lossRows = losses.map(
    ({ weights, count, difference, divergence, exactLoss, roundedLoss, agreed }) => [
      weights,
      String(count),
      difference.toFixed(4),
      divergence.toFixed(5),
      `${exactLoss.toFixed(4)} → ${roundedLoss.toFixed(4)}`,
      `${(100 * agreed).toFixed(1)} %`,
    ],
  );
  const ratioTo = (side: string, { batch, busyRates }: Speed): string => {
    const other = speeds.find((speed) => speed.side === side && speed.batch === batch)?.busyRates;
    if (other === undefined) return "";
    return formatSummary(summarise(busyRates.map((rate, i) => rate / (other[i] as number))));
  };
  const speedRows = speeds.map((speed) => [
    String(speed.batch),
    speed.side,
    formatSummary(summarise(speed.rates)),
    formatSummary(summarise(speed.busyRates)),
    ratioTo("f32", speed),
    ratioTo(peerName, speed),
  ]);
  const head = [
    "weights",
    "tokens",
    "mean difference of log-probability",
    "KL",
    "nats per token",
    "same likeliest token",
  ];
  return [
    markdownTable(head, lossRows),
    "",
    markdownTable(
      ["sequences", "weights", "tokens/s", "tokens per processor second", "of f32", `of ${peerName}`],
      speedRows,
    ),
    "",
    `Median (min-max) of interleaved rounds; ratios round by round, of processor time; peer: ${peer ?? "none"}.`,
  ].join("\n");
}
