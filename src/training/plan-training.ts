/**
 * What a recipe will take, before anything large is allocated: memory, time of a step, tokens, and disk for
 * checkpoints. Memory follows from the shape of the model; time from the measured speed of matrix products and from
 * episodes half as long as they may be, which only a run can correct.
 */
import type { Recipe } from "../config/recipe.ts";
import type { Stage } from "../config/stage-options.ts";
import { tokenBytes } from "../engine/cache-budget.ts";
import { adapterShapes } from "../engine/lora.ts";
import { samplingBytes, type TrainedShape } from "../engine/memory-estimate.ts";
import { type ModelOptions, parameterCount } from "../engine/model-options.ts";
import { type MachineSpeed, samplingSeconds, trainingSeconds } from "../engine/time-estimate.ts";
import { planTraining, type TrainingPlan } from "../engine/training-plan.ts";
import { EngineError } from "../errors.ts";
import { engineOptions, machineMemory, memoryBudget } from "./engine-options.ts";
import { episodeTokens, promptAllowance } from "./episode-tokens.ts";

/** How a recipe uses memory, in bytes. */
export interface MemoryPlan {
  readonly shape: TrainedShape;
  readonly training: TrainingPlan;
  /** What training may take. */
  readonly budget: number;
  /** Frozen copies and critics that stay beside what is trained. */
  readonly copies: number;
  /** The sampler's copy of the weights, and its keys and values; nothing where no stage samples. */
  readonly sampler: number;
  /** All that is resident at once. */
  readonly peak: number;
  /** What this machine has. */
  readonly available: number;
}

/** The shape of what a recipe trains of a model. */
export function trainedShape({ engine }: Pick<Recipe, "engine">, model: ModelOptions): TrainedShape {
  const parameters = parameterCount(model);
  if (engine.lora === undefined) return { model, parameters, trained: parameters };
  let trained = 0;
  for (const shape of adapterShapes(model, engine.lora).values()) trained += shape.reduce((a, b) => a * b, 1);
  return { model, parameters: parameters + trained, trained };
}

/** Memory from the shape alone. */
export function planMemory(recipe: Recipe, model: ModelOptions): MemoryPlan {
  const shape = trainedShape(recipe, model);
  const options = engineOptions(recipe);
  const training = planTraining(shape, options);
  const copies = 4 * shape.trained * copiesOf(recipe.stages);
  const sampler = samplerBytes(recipe, model);
  const peak = training.memory.peak + copies + sampler;
  const budget = memoryBudget(recipe.engine);
  return { shape, training, budget, copies, sampler, peak, available: machineMemory() };
}

/** Numbers beside each trained one: one for a frozen reference, four for a critic with a trunk of its own. */
function copiesOf(stages: readonly Stage[]): number {
  const algorithms = stages.flatMap((stage) => (stage.type === "reinforcement" ? [stage.algorithm] : []));
  const hasReference = algorithms.some(({ kl }) => kl);
  const hasCritic = algorithms.some((options) => options.type === "ppo" && options.critic.trunk === "own");
  return (hasReference ? 1 : 0) + (hasCritic ? 4 : 0);
}

/** Every training evaluates, so that every one samples. */
function samplerBytes(recipe: Recipe, model: ModelOptions): number {
  const { maxSlots, cacheMemory } = engineOptions(recipe);
  const tokens = Math.min(model.contextLength, episodeTokens(recipe.environment));
  const slots = Math.min(
    maxSlots,
    Math.max(1, Math.floor((cacheMemory as number) / (tokens * tokenBytes(model)))),
  );
  const weights = 4 * parameterCount(model);
  return samplingBytes(model, { slots, tokens }) - weights;
}

/** Throws `EngineError` with the numbers and what to change where a training cannot fit. */
export function requireMemory(recipe: Recipe, plan: MemoryPlan): void {
  const problem = memoryProblem(recipe, plan);
  if (problem !== undefined) throw new EngineError(problem);
}

/** Why a training cannot fit, in a sentence; undefined where it fits. */
export function memoryProblem({ engine }: Recipe, plan: MemoryPlan): string | undefined {
  const { training, budget, peak, available } = plan;
  const { weights, gradients, moments, activations, workspace, runtime } = training.memory;
  const parts = `weights ${gigabytes(weights)}, gradients ${gigabytes(gradients)}, moments ${gigabytes(moments)}, activations ${gigabytes(activations)}, workspace ${gigabytes(workspace)}, runtime ${gigabytes(runtime)}`;
  const changes = [
    ...(engine.lora === undefined ? ["train adapters (engine.lora)"] : []),
    ...(engine.tokenBudget === undefined ? [] : ["leave engine.tokenBudget out"]),
    "lower environment.maxTurnTokens, maxObservationTokens or maxSearches",
    "use a smaller model",
  ].join(", ");
  if (!training.fits)
    return `training needs at least ${gigabytes(training.memory.peak)} (${parts}), engine.memoryBudget is ${gigabytes(budget)}; raise it to that, or ${changes}`;
  if (peak <= available) return undefined;
  return `the recipe needs ${gigabytes(peak)} (training ${gigabytes(training.memory.peak)}: ${parts}; copies ${gigabytes(plan.copies)}; sampling ${gigabytes(plan.sampler)}), this machine has ${gigabytes(available)}; lower engine.memoryBudget or engine.cacheMemory, ${changes}`;
}

export function gigabytes(bytes: number): string {
  return bytes >= 1e9 ? `${(bytes / 1e9).toFixed(2)} GB` : `${(bytes / 1e6).toFixed(0)} MB`;
}

/** What one step of a stage takes. */
export interface StagePlan {
  readonly name: string;
  readonly type: Stage["type"];
  readonly steps: number;
  /** Tokens of one step that are trained on, and of those that are sampled. */
  readonly tokensPerStep: number;
  readonly sampledTokensPerStep: number;
  readonly secondsPerStep: number;
}

/** Time of every stage, evaluations and checkpoints not counted. */
export function planStages(recipe: Recipe, plan: MemoryPlan, speed: MachineSpeed): StagePlan[] {
  const { shape, training } = plan;
  const episode = typicalEpisode(recipe, shape.model);
  return recipe.stages.map((stage) => {
    const { name, type, steps } = stage;
    const isSupervised = stage.type === "supervised";
    const episodes = isSupervised ? stage.batchSize : stage.questionsPerStep * stage.algorithm.groupSize;
    const epochs = isSupervised ? 1 : stage.algorithm.epochs;
    const tokens = episodes * episode.tokens;
    const sampled = isSupervised ? 0 : episodes * episode.policyTokens;
    const work = {
      tokens,
      time: episode.tokens,
      selected: episodes * episode.policyTokens,
      keptLayers: training.keptLayers,
    };
    const trained = epochs * trainingSeconds(shape, work, speed);
    const prefilled = isSupervised ? 0 : tokens - sampled;
    const sampling = samplingSeconds(
      shape.model,
      { tokens: sampled, prefilled, context: episode.tokens / 2 },
      speed,
    );
    return {
      name,
      type,
      steps,
      tokensPerStep: Math.round(tokens),
      sampledTokensPerStep: Math.round(sampled),
      secondsPerStep: trained + sampling,
    };
  });
}

/** Half of the turns and observations that are allowed, after a prompt. */
function typicalEpisode(
  { environment }: Recipe,
  { contextLength }: ModelOptions,
): { readonly tokens: number; readonly policyTokens: number } {
  const { mode, maxSearches, maxTurnTokens } = environment;
  const most = Math.min(contextLength, episodeTokens(environment));
  const turns = mode === "search" || mode === "planner" ? maxSearches + 1 : 1;
  const tokens = (most + Math.min(most, promptAllowance / 2)) / 2;
  return { tokens, policyTokens: Math.min(tokens, (turns * maxTurnTokens) / 2) };
}

/** Bytes of one checkpoint: what is trained with its two moments. */
export function checkpointBytes({ trained }: TrainedShape): number {
  return 12 * trained;
}

/** Bytes of all checkpoints that lie in a run at once: those kept, the best, and the one being written. */
export function checkpointsBytes({ checkpoint }: Recipe, shape: TrainedShape): number {
  return (checkpoint.keep + 2) * checkpointBytes(shape);
}
