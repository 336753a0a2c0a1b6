/**
 * The same recipe and seed in this process and behind `forager serve engine`: the reinforcement stage of `lab` from one warm
 * start, all weights trained. The last bits of a logit depend on which turns share a batch, which over HTTP is chance: losses
 * and gradients agree to some six digits at first, and drift apart as two trainings do that differ in a bit.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { loadRecipe } from "../../src/config/load-recipe.ts";
import type { Recipe } from "../../src/config/recipe.ts";
import { tinkerOptionsSchema } from "../../src/engine/tinker/tinker-options.ts";
import type { MetricRow } from "../../src/reporting/metric-row.ts";
import { RunFolder } from "../../src/reporting/run-folder.ts";
import type { TrajectoryRecord } from "../../src/reporting/trajectory-record.ts";
import { silentReporter } from "../../src/training/reporter.ts";
import { train } from "../../src/training/train.ts";
import { warmStartOf } from "../../src/training/warm-start.ts";

const root = new URL("../../", import.meta.url).pathname;

interface Trained {
  readonly rows: readonly MetricRow[];
  readonly trajectories: readonly TrajectoryRecord[];
}

/** Trains `steps` steps of reinforcement twice, after `warmUp` supervised ones. */
export async function measureCurve({ steps, warmUp }: { readonly steps: number; readonly warmUp: number }) {
  const folder = await mkdtemp(join(tmpdir(), "forager-curve-"));
  try {
    const overrides = [
      `stages.warm-up.steps=${warmUp}`,
      `stages.grpo.steps=${steps}`,
      "evaluation.n=2",
      // Gradients of equal batches are compared, and both begin with the whole step's.
      "stages.grpo.algorithm.rejectGroupsWithoutSignal=false",
    ];
    const recipe = await loadRecipe(join(root, "recipes", "lab.yaml"), { overrides });
    const start = warmStartOf(recipe);
    if (start === undefined) throw new Error("lab.yaml begins with a supervised stage");
    process.stderr.write(`warm start of ${warmUp} steps, then twice ${steps} steps\n`);
    const warm = await trainedRun(start.recipe, join(folder, "warm"));
    const checkpoint = await warm.latestCheckpoint();
    if (checkpoint === undefined) throw new Error("the warm start left no checkpoint");
    const rest = start.rest(checkpoint.path);
    const here = await trainedRun(rest, join(folder, "here"));
    const there = await served(checkpoint.path, folder, (url) =>
      trainedRun(behind(url, rest), join(folder, "there")),
    );
    return await compareRuns(here, there);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** The same recipe with all weights trained on a server. */
export function behind(url: string, recipe: Recipe): Recipe {
  const engine = tinkerOptionsSchema.parse({ type: "tinker", url, rank: 0, downloadAdapters: false });
  return { ...recipe, engine };
}

export async function trainedRun(recipe: Recipe, folder: string): Promise<RunFolder> {
  const now = (): number => performance.now();
  await train({ recipe, folder, resume: false, reporter: silentReporter, now, codeVersion: "bench" });
  return await RunFolder.open(folder);
}

/** Runs `work` against `forager serve engine`, a process of its own. */
async function served<T>(model: string, folder: string, work: (url: string) => Promise<T>): Promise<T> {
  const main = join(root, "src", "cli", "main.ts");
  const flags = ["serve", "engine", "--model", model, "--port", "0", "--state", join(folder, "state")];
  const server = spawn(process.execPath, ["--import", "tsx", main, ...flags], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  try {
    return await work(await urlOf(server));
  } finally {
    server.kill();
    await new Promise((resolve) => server.once("close", resolve));
  }
}

async function urlOf(server: ChildProcess): Promise<string> {
  if (server.stdout === null) throw new Error("the server has no output");
  for await (const line of createInterface({ input: server.stdout }))
    if (line.startsWith("{")) return (JSON.parse(line) as { readonly url: string }).url;
  throw new Error("the server ended before it was ready");
}

/** Two runs of one recipe, step by step. */
export async function compareRuns(here: RunFolder, there: RunFolder): Promise<Compared> {
  const [mine, theirs] = [await read(here), await read(there)];
  const steps = mine.rows.map((row, index): CurveStep => {
    const other = theirs.rows[index];
    const pair = (key: "reward/mean" | "loss/value" | "gradient/norm"): Pair => [
      row[key] ?? Number.NaN,
      other?.[key] ?? Number.NaN,
    ];
    return {
      step: row.step,
      reward: pair("reward/mean"),
      loss: pair("loss/value"),
      gradientNorm: pair("gradient/norm"),
      equal: equalTrajectories(row.step, mine, theirs),
    };
  });
  return { steps, logprobDifference: logprobDifference(mine, theirs) };
}

async function read(run: RunFolder): Promise<Trained> {
  return { rows: await run.readMetrics(), trajectories: await run.readTrajectories("grpo") };
}

/** In this process, behind the server. */
type Pair = readonly [number, number];

interface Compared {
  readonly steps: readonly CurveStep[];
  /** Largest difference of a sampled log-probability in the first step, whose weights are equal, over equal trajectories. */
  readonly logprobDifference: number;
}

interface CurveStep {
  readonly step: number;
  readonly reward: Pair;
  readonly loss: Pair;
  readonly gradientNorm: Pair;
  /** Share of the trajectories that the run kept, one group of the step, with the same tokens. */
  readonly equal: number;
}

const nameOf = ({ step, trajectory }: TrajectoryRecord): string =>
  `${step} ${trajectory.group} ${trajectory.sample}`;
const tokensOf = ({ trajectory }: TrajectoryRecord): string =>
  trajectory.segments.map(({ tokens }) => tokens.join()).join("|");

function equalTrajectories(step: number, here: Trained, there: Trained): number {
  const others = new Map(there.trajectories.map((record) => [nameOf(record), tokensOf(record)]));
  // A trajectory is kept under the step before which it was sampled.
  const mine = here.trajectories.filter((record) => record.step === step - 1);
  return (
    mine.filter((record) => others.get(nameOf(record)) === tokensOf(record)).length / Math.max(1, mine.length)
  );
}

function logprobDifference(here: Trained, there: Trained): number {
  const others = new Map(there.trajectories.map((record) => [nameOf(record), record]));
  let most = 0;
  for (const record of here.trajectories) {
    const other = others.get(nameOf(record));
    if (record.step !== 0 || other === undefined || tokensOf(record) !== tokensOf(other)) continue;
    for (const [index, { logprobs = [] }] of record.trajectory.segments.entries())
      for (const [t, value] of logprobs.entries())
        most = Math.max(
          most,
          Math.abs(value - (other.trajectory.segments[index]?.logprobs?.[t] ?? Number.NaN)),
        );
  }
  return most;
}

export function curveRows({ steps, logprobDifference }: Compared): string[][] {
  const pair = ([a, b]: Pair, digits: number): string => `${a.toFixed(digits)} / ${b.toFixed(digits)}`;
  return [
    ...steps.map(({ step, reward, loss, gradientNorm, equal }) => [
      `step ${step}: reward, loss, norm of the gradient, here / there; equal trajectories of a group`,
      `${pair(reward, 4)}, ${pair(loss, 6)}, ${pair(gradientNorm, 5)}, ${(100 * equal).toFixed(1)} %`,
    ]),
    ["largest difference of a sampled log-probability in step 1", logprobDifference.toExponential(1)],
  ];
}
