/** `forager plan RECIPE` for an engine elsewhere: GPUs, hours and money, each as the range that it is, with what it was scaled from. */
import type { Recipe } from "../config/recipe.ts";
import { UsageError } from "../errors.ts";
import { formatDuration } from "../reporting/progress.ts";
import { defaultGpuPrice, type MeasuredThroughput, measuredSteps } from "../training/measured-throughputs.ts";
import { planRemote, type Range, type RemotePlan } from "../training/plan-remote.ts";
import type { CommandIo, CommandResult } from "./command.ts";

export interface RemoteFlags {
  readonly gpus?: number | undefined;
  /** Dollars for one GPU and hour, as typed. */
  readonly gpuPrice?: string | undefined;
}

/** Prints the plan of a recipe whose engine is elsewhere. Throws `UsageError` for a price that is none, `ConfigError` as `planRemote`. */
export function planRemoteRecipe(
  recipe: Recipe,
  { gpus, gpuPrice }: RemoteFlags,
  io: CommandIo,
): CommandResult {
  const dollarsPerGpuHour = gpuPrice === undefined ? defaultGpuPrice.dollars : Number(gpuPrice);
  if (!Number.isFinite(dollarsPerGpuHour) || dollarsPerGpuHour < 0)
    throw new UsageError(
      `--gpu-price must be dollars for one GPU and hour, such as 2.50, not ${JSON.stringify(gpuPrice)}`,
    );
  const plan = planRemote(recipe, { gpus, dollarsPerGpuHour });
  const price = gpuPrice === undefined ? defaultGpuPrice : { dollars: dollarsPerGpuHour };
  print(plan, { dollarsPerGpuHour, isGiven: gpuPrice !== undefined }, io);
  return { json: { recipe: recipe.name, isEstimate: true, ...plan, price } };
}

function print(
  {
    billions,
    gpus,
    leastGpus,
    stages,
    leftOut,
    evaluations,
    evaluationSeconds,
    hours,
    dollars,
    rows,
  }: RemotePlan,
  { dollarsPerGpuHour, isGiven }: { readonly dollarsPerGpuHour: number; readonly isGiven: boolean },
  io: CommandIo,
): void {
  io.print("an estimate from what others measured; nothing of it was measured here");
  io.print(
    `GPUs        ${gpus} of 80 GB; a model of ${billions} B and its sampler need at least ${leastGpus}, without the retriever`,
  );
  if (gpus < leastGpus)
    io.print(`too few     ${gpus} cannot hold it; hours and money are of no use for so few`);
  for (const { name, steps, trajectoriesPerStep, updateSeconds, rolloutSeconds, stepSeconds } of stages)
    io.print(
      `${name.padEnd(11)} ${steps} steps of ${duration(stepSeconds)} (update ${formatDuration(1000 * updateSeconds)}, rollouts up to ${formatDuration(1000 * rolloutSeconds[1])}) with ${trajectoriesPerStep} trajectories`,
    );
  if (leftOut.length > 0)
    io.print(`left out    ${leftOut.join(", ")}: nothing is published of supervised steps; they come on top`);
  io.print(`evaluation  ${evaluations} times, ${formatDuration(1000 * evaluationSeconds)} in all`);
  io.print(`hours       ${hours.map((value) => value.toFixed(1)).join(" to ")}`);
  io.print(
    `money       $${dollars.map((value) => value.toFixed(0)).join(" to $")} at $${dollarsPerGpuHour.toFixed(2)} for a GPU and hour${
      isGiven
        ? ""
        : `, the price of ${defaultGpuPrice.date} (${defaultGpuPrice.source}); yours with --gpu-price`
    }`,
  );
  io.print("scaled from");
  for (const row of rows) io.print(`  ${describe(row)}`);
  io.print("to hold it against");
  for (const row of measuredSteps) io.print(`  ${describe(row)}`);
  io.print(
    "work is taken as proportional to parameters and trajectories and divided by GPUs, adapters as costly as whole weights; retrieval that is slower than the policy comes on top",
  );
}

function describe({ name, gpus, gpu, part, seconds, rolloutSeconds, source }: MeasuredThroughput): string {
  const [least, most] = seconds;
  const told = least === most ? `${least} s` : `${least} to ${most} s`;
  const rollout = rolloutSeconds === undefined ? "" : `, rollouts ${rolloutSeconds} s of it`;
  return `${name}, ${gpus}×${gpu}: ${part === "rollout and step" ? "step" : part} ${told}${rollout}; ${source}`;
}

function duration([least, most]: Range): string {
  const [from, to] = [formatDuration(1000 * least), formatDuration(1000 * most)];
  return from === to ? from : `${from} to ${to}`;
}
