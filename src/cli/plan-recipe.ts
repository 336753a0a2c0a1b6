/** `forager plan RECIPE`: memory, time, tokens and disk of a training, before anything large is allocated. */
import { loadRecipe } from "../config/load-recipe.ts";
import { trainableModel } from "../config/model-source-options.ts";
import type { Recipe } from "../config/recipe.ts";
import type { ModelOptions } from "../engine/model-options.ts";
import { formatDuration } from "../reporting/progress.ts";
import { engineOptions } from "../training/engine-options.ts";
import { episodeTokens, promptAllowance } from "../training/episode-tokens.ts";
import { hubSettings } from "../training/hub-settings.ts";
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

/** Whether `forager plan` was given a recipe and not a corpus. */
export function isRecipePath(path: string): boolean {
  return /\.ya?ml$/i.test(path);
}

/** Plans the recipe at `path`; a plan that does not fit exits with 1. */
export async function planRecipe(
  path: string,
  overrides: readonly string[],
  io: CommandIo,
): Promise<CommandResult> {
  const recipe = await loadRecipe(path, { overrides });
  const model = await shapeOf(recipe, io);
  const memory = planMemory(recipe, model);
  const { threads, maxSlots } = engineOptions(recipe);
  const probe = { model, threads, slots: maxSlots, seconds: probeSeconds };
  const { measureSpeed } = await import("../engine/product-probe.ts");
  const wall = await measureSpeed({ ...probe, now: io.progress.now });
  const processor = await measureSpeed({ ...probe, now: processorClock });
  const plan: Plan = {
    memory,
    stages: planStages(recipe, memory, wall),
    processorStages: planStages(recipe, memory, processor),
    problem: memoryProblem(recipe, memory),
  };
  print(recipe, plan, io);
  return { json: planJson(recipe, plan), exitCode: plan.problem === undefined ? 0 : 1 };
}

interface Plan {
  readonly memory: MemoryPlan;
  readonly stages: readonly StagePlan[];
  /** The same with seconds of the processor, all cores together, which other work on the machine changes little. */
  readonly processorStages: readonly StagePlan[];
  readonly problem: string | undefined;
}

/** The shape of the recipe's model, from headers alone; nothing is downloaded. */
async function shapeOf(recipe: Recipe, io: CommandIo): Promise<ModelOptions> {
  const model = trainableModel(recipe.model);
  if (model.type === "fresh") {
    const { type: _, ...options } = model;
    return options;
  }
  const { findKnownModel } = await import("../engine/known-models.ts");
  const known = findKnownModel(model.source);
  if (known !== undefined) return known.model;
  const [{ locateModel }, { openModelFiles }] = await Promise.all([
    import("../engine/model-source.ts"),
    import("../engine/model-files.ts"),
  ]);
  const hub = { ...hubSettings(process.env, io), offline: true };
  const files = await openModelFiles(await locateModel(model.source, hub), hub);
  await files.close();
  return files.model;
}

/** Seconds of each of the four measurements. */
const probeSeconds = 0.5;

function planJson(
  recipe: Recipe,
  { memory, stages, processorStages, problem }: Plan,
): Record<string, unknown> {
  const { training, shape, copies, sampler, budget, peak, available } = memory;
  const seconds = stages.reduce((sum, { steps, secondsPerStep }) => sum + steps * secondsPerStep, 0);
  return {
    recipe: recipe.name,
    fits: problem === undefined,
    problem: problem ?? null,
    peakBytes: Math.round(peak),
    trainingPeakBytes: Math.round(training.memory.peak),
    samplerBytes: Math.round(sampler),
    copiesBytes: Math.round(copies),
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

function print(recipe: Recipe, { memory, stages, problem }: Plan, io: CommandIo): void {
  const { training, shape, copies, sampler, peak, available } = memory;
  const { memory: parts } = training;
  io.print(
    `model       ${(shape.parameters / 1e6).toFixed(1)} M parameters, ${(shape.trained / 1e6).toFixed(1)} M trained`,
  );
  io.print(`memory      ${gigabytes(peak)} of ${gigabytes(available)}`);
  io.print(
    `  training  ${gigabytes(parts.peak)}: weights ${gigabytes(parts.weights)}, gradients ${gigabytes(parts.gradients)}, moments ${gigabytes(parts.moments)}, activations ${gigabytes(parts.activations)}, workspace ${gigabytes(parts.workspace)}`,
  );
  const inTurns = parts.peak + copies + sampler > peak ? ", most of it in turns with training" : "";
  io.print(`  sampling  ${gigabytes(sampler)}${inTurns}; copies ${gigabytes(copies)}`);
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
