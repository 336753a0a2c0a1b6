/** `forager plan RECIPE`: memory, time, tokens and disk of a training, before anything large is allocated. */
import { loadRecipe } from "../config/load-recipe.ts";
import { trainableModel } from "../config/model-source-options.ts";
import type { Recipe } from "../config/recipe.ts";
import { UsageError } from "../errors.ts";
import { formatDuration } from "../reporting/progress.ts";
import { type Companion, companionProblem, planCompanions, totalPeak } from "../training/companions.ts";
import { engineOptions } from "../training/engine-options.ts";
import { episodeTokens, promptAllowance } from "../training/episode-tokens.ts";
import { modelShape } from "../training/model-shape.ts";
import {
  checkpointBytes,
  diskBytes,
  gigabytes,
  type MemoryPlan,
  memoryProblem,
  planMemory,
  planStages,
  type StagePlan,
} from "../training/plan-training.ts";
import { processorClock } from "../training/processor-clock.ts";
import type { CommandIo, CommandResult } from "./command.ts";
import { planRemoteRecipe, type RemoteFlags } from "./plan-remote.ts";

/** Whether `forager plan` was given a recipe and not a corpus. */
export function isRecipePath(path: string): boolean {
  return /\.ya?ml$/i.test(path);
}

/** Plans the recipe at `path`; a plan that does not fit exits with 1. */
export async function planRecipe(
  path: string,
  { overrides, ...remote }: RemoteFlags & { readonly overrides: readonly string[] },
  io: CommandIo,
): Promise<CommandResult> {
  const recipe = await loadRecipe(path, { overrides });
  if (recipe.engine.type === "tinker") return planRemoteRecipe(recipe, remote, io);
  if (remote.gpus !== undefined || remote.gpuPrice !== undefined)
    throw new UsageError("plan: --gpus and --gpu-price are for a recipe with an engine elsewhere");
  const model = await modelShape(trainableModel(recipe.model), io);
  const memory = planMemory(recipe, model);
  const companions = await planCompanions(recipe, io);
  const { threads, maxSlots } = engineOptions(recipe);
  const probe = { model, threads, slots: maxSlots, seconds: probeSeconds };
  const { measureSpeed } = await import("../engine/product-probe.ts");
  const wall = await measureSpeed({ ...probe, now: io.progress.now });
  const processor = await measureSpeed({ ...probe, now: processorClock });
  const plan: Plan = {
    memory,
    companions,
    stages: planStages(recipe, memory, wall),
    processorStages: planStages(recipe, memory, processor),
    problem: memoryProblem(recipe, memory) ?? companionProblem(memory, companions),
  };
  print(recipe, plan, io);
  return { json: planJson(recipe, plan), exitCode: plan.problem === undefined ? 0 : 1 };
}

interface Plan {
  readonly memory: MemoryPlan;
  readonly companions: readonly Companion[];
  readonly stages: readonly StagePlan[];
  /** The same with seconds of the processor, all cores together, which other work on the machine changes little. */
  readonly processorStages: readonly StagePlan[];
  readonly problem: string | undefined;
}

/** Seconds of each of the four measurements. */
const probeSeconds = 0.5;

function planJson(
  recipe: Recipe,
  { memory, companions, stages, processorStages, problem }: Plan,
): Record<string, unknown> {
  const { training, shape, copies, sampler, budget, available } = memory;
  const seconds = stages.reduce((sum, { steps, secondsPerStep }) => sum + steps * secondsPerStep, 0);
  return {
    recipe: recipe.name,
    fits: problem === undefined,
    problem: problem ?? null,
    peakBytes: Math.round(totalPeak(memory, companions)),
    trainingPeakBytes: Math.round(training.memory.peak),
    samplerBytes: Math.round(sampler),
    copiesBytes: Math.round(copies),
    companions: companions.map(({ part, bytes }) => ({ part, bytes: Math.round(bytes) })),
    memoryBudgetBytes: budget,
    availableBytes: available,
    secondsPerStep: stages.at(-1)?.secondsPerStep,
    processorSecondsPerStep: processorStages.at(-1)?.secondsPerStep,
    seconds,
    parameters: shape.parameters,
    trainedParameters: shape.trained,
    microBatchTokens: training.tokenBudget,
    keptLayers: training.keptLayers,
    layers: shape.model.layers,
    longestEpisodeTokens: episodeTokens(recipe.environment),
    checkpointBytes: checkpointBytes(recipe, shape),
    diskBytes: diskBytes(recipe, shape),
    stages,
  };
}

function print(recipe: Recipe, { memory, companions, stages, problem }: Plan, io: CommandIo): void {
  const { training, shape, copies, sampler, peak, available } = memory;
  const { memory: parts } = training;
  io.print(
    `model       ${(shape.parameters / 1e6).toFixed(1)} M parameters, ${(shape.trained / 1e6).toFixed(1)} M trained`,
  );
  io.print(`memory      ${gigabytes(totalPeak(memory, companions))} of ${gigabytes(available)}`);
  io.print(
    `  training  ${gigabytes(parts.peak)}: weights ${gigabytes(parts.weights)}, gradients ${gigabytes(parts.gradients)}, moments ${gigabytes(parts.moments)}, activations ${gigabytes(parts.activations)}, workspace ${gigabytes(parts.workspace)}`,
  );
  const inTurns = parts.peak + copies + sampler > peak ? ", most of it in turns with training" : "";
  io.print(`  sampling  ${gigabytes(sampler)}${inTurns}; copies ${gigabytes(copies)}`);
  for (const { part, bytes } of companions) io.print(`  ${part.padEnd(9)} ${gigabytes(bytes)}`);
  const again = shape.model.layers - training.keptLayers;
  io.print(
    `micro-batch ${training.tokenBudget} tokens, ${again === 0 ? "no layer is computed twice" : `${again} of ${shape.model.layers} layers are computed twice`}`,
  );
  for (const { name, steps, secondsPerStep, tokensPerStep, sampledTokensPerStep } of stages)
    io.print(
      `${name.padEnd(11)} ${steps} steps of ${formatDuration(1000 * secondsPerStep)}, ${formatDuration(1000 * steps * secondsPerStep)} in all; a step trains on about ${tokensPerStep} tokens and samples ${sampledTokensPerStep}`,
    );
  io.print(
    `disk        ${gigabytes(diskBytes(recipe, shape))}, a checkpoint ${gigabytes(checkpointBytes(recipe, shape))}`,
  );
  io.print(
    `episodes are taken as half as long as they may be (${episodeTokens(recipe.environment)} tokens with a prompt of ${promptAllowance}); give or take a fifth`,
  );
  if (problem !== undefined) io.print(`does not fit: ${problem}`);
}
