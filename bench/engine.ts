/**
 * The embedded engine against PyTorch 2 on the same CPU: training tokens per second (forward, backward, clipping,
 * AdamW) and greedy decoding tokens per second against transformers `generate`, fp32, random weights, equal thread
 * counts, interleaved rounds. Python is found by FORAGER_PYTHON (default `python3`); without torch only our
 * side is measured, and the table says so.
 */
import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";
import type { Bench } from "./bench.ts";
import { integerOptions } from "./bench.ts";
import { type EngineCase, engineCases } from "./engine-cases.ts";
import {
  type Comparison,
  formatBytes,
  formatSummary,
  interleave,
  markdownTable,
  ratios,
  type Side,
  summarise,
} from "./measure.ts";
import { Worker, WorkerError } from "./worker.ts";

interface Result extends Comparison {
  readonly case: string;
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
    for (const chosen of cases) {
      const result = await measureCase(chosen, options, peer);
      process.stderr.write(`${markdownRow(result).join(" | ")}\n`);
      results.push(result);
    }
    const data = { threads: options.threads, peer: peer?.name, results };
    return { markdown: render(results, options.threads, peer), data };
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

/** Each case has fresh processes on both sides, so that its peak memory is its own. */
async function measureCase(
  chosen: EngineCase,
  { rounds, threads }: { readonly rounds: number; readonly threads: number },
  peer: Peer | undefined,
): Promise<Result> {
  process.stderr.write(`${chosen.name}: ${chosen.about}\n`);
  const ours = startOurs();
  const other = peer === undefined ? undefined : startPeer(peer.python);
  try {
    for (const worker of [ours, other]) await worker?.request("prepare", { model: chosen.model, threads });
    const { op, ...work } = chosen.work;
    const side = (worker: Worker): Side => {
      return async () => {
        const { seconds, tokens } = await worker.request(op, work);
        return { seconds: Number(seconds), tokens: Number(tokens) };
      };
    };
    const comparison = await interleave(rounds, side(ours), other && side(other));
    const peak = async (worker: Worker): Promise<number> => Number((await worker.request("peak")).bytes);
    return {
      case: chosen.name,
      ...comparison,
      ourPeakBytes: await peak(ours),
      peerPeakBytes: other && (await peak(other)),
    };
  } finally {
    ours.close();
    other?.close();
  }
}

function markdownRow(result: Result): string[] {
  const isCompared = result.peer.length > 0;
  return [
    result.case,
    formatSummary(summarise(result.ours)),
    isCompared ? formatSummary(summarise(result.peer)) : "not measured",
    isCompared ? formatSummary(summarise(ratios(result))) : "",
    formatBytes(result.ourPeakBytes),
    result.peerPeakBytes === undefined ? "" : formatBytes(result.peerPeakBytes),
  ];
}

function render(results: readonly Result[], threads: number, peer: Peer | undefined): string {
  const rows = results.map(markdownRow);
  const head = ["case", "Forager tokens/s", "peer tokens/s", "ratio", "Forager peak", "peer peak"];
  const note = `Median (min-max) of interleaved rounds, ${threads} threads; peer: ${peer?.name ?? "none (PyTorch not found)"}.`;
  return `${markdownTable(head, rows)}\n\n${note}`;
}
