/**
 * The same recipe and seed in this process and behind `forager serve engine`: the reinforcement stage of `lab` from one warm
 * start, all weights trained. Steps are compared by reward, loss and norm of the gradient; trajectories one by one, since
 * which turns share a batch decides the last bits of a logit, and now and then a token.
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
    const warm = await trained(start.recipe, join(folder, "warm"));
    const checkpoint = await warm.latestCheckpoint();
    if (checkpoint === undefined) throw new Error("the warm start left no checkpoint");
    const rest = start.rest(checkpoint.path);
    const here = await read(await trained(rest, join(folder, "here")));
    const there = await served(checkpoint.path, folder, async (url) => {
      const engine = tinkerOptionsSchema.parse({ type: "tinker", url, rank: 0, downloadAdapters: false });
      return await read(await trained({ ...rest, engine }, join(folder, "there")));
    });
    return compare(here, there);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function trained(recipe: Recipe, folder: string): Promise<RunFolder> {
  process.stderr.write(`${folder} starts\n`);
  const now = (): number => performance.now();
  await train({ recipe, folder, resume: false, reporter: silentReporter, now, codeVersion: "bench" });
  return await RunFolder.open(folder);
}

async function read(run: RunFolder): Promise<Trained> {
  return { rows: await run.readMetrics(), trajectories: await run.readTrajectories("grpo") };
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

function compare(here: Trained, there: Trained) {
  const keys = ["reward/mean", "loss/value", "gradient/norm"] as const;
  const steps = here.rows.map((row, index) => {
    const other = there.rows[index];
    const pairs = keys.map((key) => [key, [row[key] ?? Number.NaN, other?.[key] ?? Number.NaN]] as const);
    const equal = equalTrajectories(row.step, here, there);
    return { step: row.step, ...Object.fromEntries(pairs), equal } as CurveStep;
  });
  return { steps, logprobDifference: logprobDifference(here, there) };
}

interface CurveStep {
  readonly step: number;
  /** In this process, behind the server. */
  readonly "reward/mean": readonly [number, number];
  readonly "loss/value": readonly [number, number];
  readonly "gradient/norm": readonly [number, number];
  /** Share of trajectories with the same tokens. */
  readonly equal: number;
}

const nameOf = ({ step, trajectory }: TrajectoryRecord): string =>
  `${step} ${trajectory.group} ${trajectory.sample}`;
const tokensOf = ({ trajectory }: TrajectoryRecord): string =>
  trajectory.segments.map(({ tokens }) => tokens.join()).join("|");

function equalTrajectories(step: number, here: Trained, there: Trained): number {
  const others = new Map(there.trajectories.map((record) => [nameOf(record), tokensOf(record)]));
  const mine = here.trajectories.filter((record) => record.step === step);
  return (
    mine.filter((record) => others.get(nameOf(record)) === tokensOf(record)).length / Math.max(1, mine.length)
  );
}

/** Largest difference of a sampled log-probability in the first step, whose weights are equal, over equal trajectories. */
function logprobDifference(here: Trained, there: Trained): number {
  const others = new Map(there.trajectories.map((record) => [nameOf(record), record]));
  let most = 0;
  for (const record of here.trajectories) {
    const other = others.get(nameOf(record));
    if (record.step !== 1 || other === undefined || tokensOf(record) !== tokensOf(other)) continue;
    for (const [index, { logprobs = [] }] of record.trajectory.segments.entries())
      for (const [t, value] of logprobs.entries())
        most = Math.max(
          most,
          Math.abs(value - (other.trajectory.segments[index]?.logprobs?.[t] ?? Number.NaN)),
        );
  }
  return most;
}

export function curveRows({
  steps,
  logprobDifference,
}: Awaited<ReturnType<typeof measureCurve>>): string[][] {
  const pair = ([a, b]: readonly [number, number], digits: number): string =>
    `${a.toFixed(digits)} / ${b.toFixed(digits)}`;
  return [
    ...steps.map((step) => [
      `step ${step.step}: reward, loss, norm of the gradient, here / there; equal trajectories`,
      [
        pair(step["reward/mean"], 4),
        pair(step["loss/value"], 6),
        pair(step["gradient/norm"], 5),
        `${(100 * step.equal).toFixed(1)} %`,
      ].join(", "),
    ]),
    ["largest difference of a sampled log-probability in step 1", logprobDifference.toExponential(1)],
  ];
}
