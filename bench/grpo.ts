/**
 * One whole step of GRPO (sampling and update) against the same work elsewhere, fp32, random weights, equal threads, in
 * turn: a single-turn step of TRL's `GRPOTrainer`; a multi-turn step, as search agents play it, of the same trainer over
 * rollouts that `generate` played in lock-step; and the same rollouts with a tighter update in PyTorch alone, which trains
 * sequences of like length together. Python with trl is found by FORAGER_PYTHON (default `python3`). With
 * `--sampling-weights int8` our side samples with weights of 8 bits; the peer, and both updates, stay in fp32.
 *
 * Not covered: retrieval and rewards, which take milliseconds; a log-probability that decides when a text ends.
 */
import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import {
  samplingWeights as allSamplingWeights,
  type SamplingWeights,
} from "../src/engine/weight-quantization.ts";
import type { Bench } from "./bench.ts";
import { type GrpoCase, grpoCases, type ShapeName, shapeNames, shapeOf } from "./grpo-cases.ts";
import { formatBytes, formatNumber, formatSummary, markdownTable, summarise } from "./measure.ts";
import { Worker, WorkerError } from "./worker.ts";

interface Step {
  readonly seconds: number;
  readonly sampling: number;
  readonly update: number;
  readonly sampledTokens: number;
  readonly tokens: number;
}

interface Result {
  readonly case: string;
  readonly about: string;
  readonly ours: readonly Step[];
  readonly peer: readonly Step[];
  readonly ourPeakBytes: number;
  readonly peerPeakBytes: number | undefined;
}

interface Options {
  readonly rounds: number;
  readonly warmUp: number;
  readonly threads: number;
  readonly model: ShapeName;
  readonly samplingWeights: SamplingWeights;
  readonly cases: readonly GrpoCase[];
}

const peerFile = fileURLToPath(new URL("peers/trl_grpo.py", import.meta.url));
const workerFile = fileURLToPath(new URL("grpo-worker.ts", import.meta.url));

export const grpoBench: Bench = {
  name: "grpo",
  about:
    "seconds of a GRPO step, of one turn and of several, against TRL's GRPOTrainer and a tighter update in PyTorch",
  options:
    "[--rounds 3] [--warm-up 1] [--threads CORES] [--model 135m|tiny] [--sampling-weights f32|int8|int4] [--cases single,multi,multi-sorted] [--questions 8] [--group 8] [--shrink 1]",
  async run(args) {
    const options = readOptions(args);
    const peer = await findPeer();
    const results: Result[] = [];
    for (const chosen of options.cases) {
      const result = await measureCase(chosen, options, peer?.python);
      process.stderr.write(`${markdownRow(result).join(" | ")}\n`);
      results.push(result);
    }
    const { threads, model, samplingWeights, rounds } = options;
    return {
      markdown: render(results, options, peer?.name),
      data: { threads, model, samplingWeights, rounds, peer: peer?.name, results },
    };
  },
};

function readOptions(args: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...args],
    options: {
      rounds: { type: "string", default: "3" },
      "warm-up": { type: "string", default: "1" },
      threads: { type: "string", default: String(availableParallelism()) },
      model: { type: "string", default: "135m" },
      "sampling-weights": { type: "string", default: "f32" },
      cases: { type: "string", default: "single,multi,multi-sorted" },
      questions: { type: "string", default: "8" },
      group: { type: "string", default: "8" },
      shrink: { type: "string", default: "1" },
    },
  });
  const whole = (name: keyof typeof values, least = 1): number => {
    const value = Number(values[name]);
    if (Number.isInteger(value) && value >= least) return value;
    throw new Error(`--${name} must be a whole number of at least ${least}`);
  };
  const model = shapeNames.find((name) => name === values.model);
  if (model === undefined) throw new Error(`--model must be one of ${shapeNames.join(", ")}`);
  const samplingWeights = allSamplingWeights.find((name) => name === values["sampling-weights"]);
  if (samplingWeights === undefined)
    throw new Error(`--sampling-weights must be one of ${allSamplingWeights.join(", ")}`);
  const all = grpoCases({ questions: whole("questions"), group: whole("group", 2), shrink: whole("shrink") });
  const cases = values.cases.split(",").map((name) => {
    const found = all.find((candidate) => candidate.name === name);
    if (found === undefined)
      throw new Error(`Unknown case ${name}; there are ${all.map((known) => known.name).join(", ")}`);
    return found;
  });
  return {
    rounds: whole("rounds"),
    warmUp: whole("warm-up", 0),
    threads: whole("threads"),
    model,
    samplingWeights,
    cases,
  };
}

async function findPeer(): Promise<{ readonly python: string; readonly name: string } | undefined> {
  const python = process.env.FORAGER_PYTHON ?? "python3";
  const worker = new Worker(python, [peerFile]);
  try {
    return { python, name: String((await worker.request("info")).name) };
  } catch (error) {
    if (!(error instanceof WorkerError)) throw error;
    process.stderr.write(
      `No comparison: ${python} cannot run TRL (${error.message.split("\n")[0]}). Set FORAGER_PYTHON to a Python that has it.\n`,
    );
    return undefined;
  } finally {
    worker.close();
  }
}

/** Each case has fresh processes on both sides; rounds take turns, so that a machine that slows down slows both. */
async function measureCase(
  { name, about, work }: GrpoCase,
  { rounds, warmUp, threads, model, samplingWeights }: Options,
  python: string | undefined,
): Promise<Result> {
  process.stderr.write(`${name}: ${about}\n`);
  const ours = new Worker(process.execPath, ["--import", "tsx", workerFile]);
  const other = python === undefined ? undefined : new Worker(python, [peerFile]);
  const steps: { ours: Step[]; peer: Step[] } = { ours: [], peer: [] };
  try {
    await ours.request("prepare", { model: shapeOf(model), threads, samplingWeights });
    await other?.request("prepare", { model: shapeOf(model), threads });
    for (let round = 1 - warmUp; round <= rounds; round++) {
      for (const [side, worker] of [["ours", ours] as const, ["peer", other] as const]) {
        if (worker === undefined) continue;
        const step = (await worker.request("step", {
          name,
          round: round + warmUp,
          ...work,
        })) as unknown as Step;
        process.stderr.write(`  round ${round}, ${side}: ${splitText(step)}\n`);
        if (round > 0) steps[side].push(step);
      }
    }
    requireSameWork(steps);
    const peak = async (worker: Worker): Promise<number> => Number((await worker.request("peak")).bytes);
    return {
      case: name,
      about,
      ...steps,
      ourPeakBytes: await peak(ours),
      peerPeakBytes: other && (await peak(other)),
    };
  } finally {
    ours.close();
    other?.close();
  }
}

function requireSameWork({
  ours,
  peer,
}: {
  readonly ours: readonly Step[];
  readonly peer: readonly Step[];
}): void {
  for (const [round, step] of peer.entries())
    if (step.tokens !== ours[round]?.tokens || step.sampledTokens !== ours[round]?.sampledTokens)
      throw new Error(
        `both sides must have as many tokens; ours ${ours[round]?.tokens}, the peer ${step.tokens}`,
      );
}

function splitText({ seconds, sampling, update }: Step): string {
  return `${formatNumber(seconds)} s (sampling ${formatNumber(sampling)}, update ${formatNumber(update)})`;
}

const column = (steps: readonly Step[], key: "seconds" | "sampling" | "update"): string =>
  formatSummary(summarise(steps.map((step) => step[key])));

/** The peer's seconds over ours, round by round: above 1 we are faster. */
function speedup({ ours, peer }: Result, key: "seconds" | "sampling" | "update"): string {
  if (peer.length === 0) return "";
  return formatSummary(summarise(peer.map((step, round) => step[key] / (ours[round] as Step)[key])));
}

function markdownRow(result: Result): string[] {
  const { ours, peer, ourPeakBytes, peerPeakBytes } = result;
  const keys = ["seconds", "sampling", "update"] as const;
  return [
    result.case,
    ...keys.map((key) => column(ours, key)),
    ...keys.map((key) => (peer.length > 0 ? column(peer, key) : "")),
    ...keys.map((key) => speedup(result, key)),
    formatBytes(ourPeakBytes),
    peerPeakBytes === undefined ? "" : formatBytes(peerPeakBytes),
  ];
}

function render(
  results: readonly Result[],
  { threads, model, samplingWeights }: Options,
  peer: string | undefined,
): string {
  const sides = ["Forager", "peer"].flatMap((side) =>
    ["s", "sampling", "update"].map((what) => `${side} ${what}`),
  );
  const head = ["case", ...sides, "ratio", "ratio sampling", "ratio update", "Forager peak", "peer peak"];
  const cases = results.map(({ case: name, about }) => `${name}: ${about}.`).join(" ");
  const note = `Seconds of one step, median (min-max) of interleaved rounds; ratio: the peer's seconds over ours. Model ${model}, ${threads} threads, our sampling weights ${samplingWeights}; peer: ${peer ?? "none (TRL not found)"}; multi: rollouts by generate in lock-step. ${cases}`;
  return `${markdownTable(head, results.map(markdownRow))}\n\n${note}`;
}
