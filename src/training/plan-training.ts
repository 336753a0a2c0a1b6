/**
 * What a recipe will take, before anything large is allocated: memory, time of a step, tokens, and disk for
 * checkpoints. Memory follows from the shape of the model; time from the measured speed of matrix products and from
 * episodes half as long as they may be, which only a run can correct.
 */
import { klOf } from "../algorithm/options.ts";
import type { Recipe } from "../config/recipe.ts";
import type { Stage } from "../config/stage-options.ts";
import { tokenBytes } from "../engine/cache-budget.ts";
import { adaptedProjections, adapterShapes, requireRank } from "../engine/lora.ts";
import {
  bytesGivenBack,
  samplerBytes,
  type TrainedShape,
  trainingMemory,
} from "../engine/memory-estimate.ts";
import { type ModelOptions, parameterCount } from "../engine/model-options.ts";
import {
  inferenceSeconds,
  type MachineSpeed,
  type SequenceWork,
  samplingSeconds,
  trainingSeconds,
} from "../engine/time-estimate.ts";
import { planTraining, type TrainingPlan } from "../engine/training-plan.ts";
import { EngineError } from "../errors.ts";
import { embeddedSection, engineOptions, machineMemory, memoryBudget } from "./engine-options.ts";
import { episodeTokens, promptAllowance } from "./episode-tokens.ts";

/** How a recipe uses memory, in bytes. */
export interface MemoryPlan {
  readonly shape: TrainedShape;
  readonly training: TrainingPlan;
  /** What training may take. */
  readonly budget: number;
  /** Frozen copies and critics that stay beside what is trained. */
  readonly copies: number;
  /** The sampler's copies of the weights, keys and values. Every training evaluates, so that every one samples. */
  readonly sampler: number;
  /** Keys and values of the longest episode that is allowed, and how many there may be at once. */
  readonly episodeCache: number;
  readonly cacheMemory: number;
  /** Most that is resident at once: large models are trained and sampled in turns (`bytesGivenBack`). */
  readonly peak: number;
  /** What this machine has. */
  readonly available: number;
}

/** Of a run beside its engine, data apart: the program itself, rollouts and trajectories on V8's heap. */
export const programBytes = 140e6;

/** The shape of what a recipe trains of a model. Throws `EngineError` for adapters whose rank is too large for it. */
export function trainedShape({ engine: named }: Pick<Recipe, "engine">, model: ModelOptions): TrainedShape {
  const engine = embeddedSection(named);
  const parameters = parameterCount(model);
  const momentsOnDisk = engine.optimizerState === "disk";
  if (engine.lora === undefined) return { model, parameters, trained: parameters, momentsOnDisk };
  requireRank(model, engine.lora);
  let trained = 0;
  for (const shape of adapterShapes(model, engine.lora).values()) trained += shape.reduce((a, b) => a * b, 1);
  return { model, parameters: parameters + trained, trained, momentsOnDisk };
}

/** Memory from the shape alone: what a recipe may take, or took where the longest episode turned out to have fewer tokens. */
export function planMemory(
  recipe: Recipe,
  model: ModelOptions,
  longestEpisode = episodeTokens(recipe.environment),
): MemoryPlan {
  const shape = trainedShape(recipe, model);
  const plan = planTraining(shape, engineOptions(recipe));
  const time = Math.min(longestEpisode, model.contextLength);
  const tokens = tokensAtOnce(recipe, plan, time);
  const training = { ...plan, memory: trainingMemory(shape, { ...plan, tokens, time }) };
  const copies = 4 * shape.trained * copiesOf(recipe.stages, shape);
  const sampler = samplerOf(recipe, model, time);
  const inTurns = Math.min(sampler, bytesGivenBack(training.memory));
  const peak = programBytes + training.memory.peak + copies + sampler - inTurns;
  const budget = memoryBudget(recipe.engine);
  const episodeCache = time * tokenBytes(model);
  const { cacheMemory = Number.POSITIVE_INFINITY } = engineOptions(recipe);
  return {
    shape,
    training,
    budget,
    copies,
    sampler,
    episodeCache,
    cacheMemory,
    peak,
    available: machineMemory(),
  };
}

/** Most tokens of a micro-batch: no more than its share of all episodes of a step may have. Rankings and candidate queries come beside those. */
function tokensAtOnce(
  { stages, environment, ranker }: Recipe,
  { tokenBudget, lanes }: TrainingPlan,
  time: number,
): number {
  const isCounted = stages.length > 0 && ranker === undefined && environment.mode !== "planner";
  const episodes = isCounted ? Math.max(...stages.map(episodesOf)) : Number.POSITIVE_INFINITY;
  return Math.max(time, Math.min(tokenBudget, Math.ceil(episodes / lanes) * time));
}

/** Episodes of one step. */
function episodesOf(stage: Stage): number {
  return stage.type === "supervised" ? stage.batchSize : stage.questionsPerStep * stage.algorithm.groupSize;
}

/** Numbers beside each trained one: one for a frozen reference; weights, gradients and moments for a critic of its own. */
function copiesOf(stages: readonly Stage[], { momentsOnDisk }: TrainedShape): number {
  const critic = momentsOnDisk ? 2 : 4;
  return (stages.some(hasReference) ? 1 : 0) + (hasOwnCritic(stages) ? critic : 0);
}

function hasReference(stage: Stage): boolean {
  if (stage.type !== "reinforcement" || stage.algorithm.type === "rejectionSampling") return false;
  return klOf(stage.algorithm) !== undefined;
}

function hasOwnCritic(stages: readonly Stage[]): boolean {
  return stages.some(
    (stage) =>
      stage.type === "reinforcement" &&
      stage.algorithm.type === "ppo" &&
      stage.algorithm.critic.trunk === "own",
  );
}

/** The packed copy of the weights, with adapters that of what they are merged into, and keys and values. */
function samplerOf(recipe: Recipe, model: ModelOptions, tokens: number): number {
  const { maxSlots, cacheMemory } = engineOptions(recipe);
  const { lora, samplingWeights } = embeddedSection(recipe.engine);
  const merged = lora ? adaptedProjections(model, lora) : [];
  const mergedWeights = merged.reduce((sum, { shape: [rows, columns] }) => sum + rows * columns, 0);
  return (
    4 * mergedWeights +
    samplerBytes(model, {
      slots: maxSlots,
      tokens,
      cacheMemory: cacheMemory as number,
      weights: samplingWeights,
    })
  );
}

/** Throws `EngineError` with the numbers and what to change where a training cannot fit. */
export function requireMemory(recipe: Recipe, plan: MemoryPlan): void {
  const problem = memoryProblem(recipe, plan);
  if (problem !== undefined) throw new EngineError(problem);
}

/** Why a training cannot fit, in a sentence; undefined where it fits. */
export function memoryProblem({ engine: named, model }: Recipe, plan: MemoryPlan): string | undefined {
  const engine = embeddedSection(named);
  const { training, budget, peak, available } = plan;
  const { weights, gradients, moments, activations, workspace, runtime } = training.memory;
  const parts = `weights ${gigabytes(weights)}, gradients ${gigabytes(gradients)}, moments ${gigabytes(moments)}, activations ${gigabytes(activations)}, workspace ${gigabytes(workspace)}, runtime ${gigabytes(runtime)}`;
  const changes = [
    ...(engine.lora === undefined && model.type !== "fresh" ? ["train adapters (engine.lora)"] : []),
    ...(engine.lora === undefined && engine.optimizerState === "memory"
      ? ["keep moments on disk (engine.optimizerState)"]
      : []),
    ...(engine.tokenBudget === undefined ? [] : ["leave engine.tokenBudget out"]),
    "lower environment.maxTurnTokens, maxObservationTokens or maxSearches",
    "use a smaller model",
  ].join(", ");
  if (!training.fits)
    return `training needs at least ${gigabytes(training.memory.peak)} (${parts}), engine.memoryBudget is ${gigabytes(budget)}; raise it to that, or ${changes}`;
  if (plan.episodeCache > plan.cacheMemory)
    return `keys and values of one episode of the longest that are allowed take ${gigabytes(plan.episodeCache)}, engine.cacheMemory is ${gigabytes(plan.cacheMemory)}; raise it to that, or lower environment.maxTurnTokens, maxObservationTokens or maxSearches`;
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

/** Time of every stage, evaluations and checkpoints not counted; of episodes whose length is known, or half as long as they may be. */
export function planStages(
  recipe: Recipe,
  plan: MemoryPlan,
  { episode = typicalEpisode(recipe, plan.shape.model), ...speed }: MachineSpeed & { episode?: Episode },
): StagePlan[] {
  const { shape, training } = plan;
  return recipe.stages.map((stage) => {
    const { name, type, steps } = stage;
    const isSupervised = stage.type === "supervised";
    const episodes = episodesOf(stage);
    const tokens = episodes * episode.tokens;
    const selected = episodes * episode.policyTokens;
    const shared = sharedTokens(stage, training, episode);
    const work = { ...training, tokens, time: episode.tokens, selected, shared };
    const update = updateSeconds(stage, { shape, work, speed });
    const sampled = isSupervised ? 0 : selected;
    const reading = { tokens: sampled, prefilled: tokens - sampled, context: episode.tokens / 2 };
    return {
      name,
      type,
      steps,
      tokensPerStep: Math.round(tokens),
      sampledTokensPerStep: Math.round(sampled),
      secondsPerStep: update + (isSupervised ? 0 : samplingSeconds(shape.model, reading, speed)),
    };
  });
}

/** Tokens of prompts that are computed once: of as many rollouts of a question as a micro-batch has room for. A small network shares none. */
function sharedTokens(stage: Stage, { inOneRun, tokenBudget }: TrainingPlan, { tokens }: Episode): number {
  if (stage.type === "supervised" || inOneRun) return 0;
  const { groupSize } = stage.algorithm;
  const together = Math.max(1, Math.min(groupSize, Math.floor(tokenBudget / tokens)));
  return stage.questionsPerStep * (groupSize - groupSize / together) * Math.min(tokens, promptAllowance / 2);
}

interface UpdateWork {
  readonly shape: TrainedShape;
  readonly work: SequenceWork & { readonly keptLayers: number };
  readonly speed: MachineSpeed;
}

/** Updates of a step, with what a critic and a frozen reference add: a second pass, and what they say before. */
function updateSeconds(stage: Stage, { shape, work, speed }: UpdateWork): number {
  const policy = trainingSeconds(shape, work, speed);
  if (stage.type === "supervised") return policy;
  const { algorithm } = stage;
  // A value head is one row of numbers.
  const valued = { ...work, selected: 0 };
  const isPpo = algorithm.type === "ppo";
  const critic = isPpo ? trainingSeconds(shape, valued, speed) : 0;
  const before =
    (isPpo ? inferenceSeconds(shape, valued, speed) : 0) +
    (hasReference(stage) ? inferenceSeconds(shape, work, speed) : 0);
  return algorithm.epochs * (policy + critic) + before;
}

/** Tokens of an episode, prompt included, and of those the policy's. */
export interface Episode {
  readonly tokens: number;
  readonly policyTokens: number;
}

/** Half of the turns and observations that are allowed, after a prompt. */
function typicalEpisode({ environment }: Recipe, { contextLength }: ModelOptions): Episode {
  const { mode, maxSearches, maxTurnTokens } = environment;
  const most = Math.min(contextLength, episodeTokens(environment));
  const turns = mode === "search" || mode === "planner" ? maxSearches + 1 : 1;
  const tokens = (most + Math.min(most, promptAllowance / 2)) / 2;
  return { tokens, policyTokens: Math.min(tokens, (turns * maxTurnTokens) / 2) };
}

/** Bytes of one checkpoint: what is trained with its two moments, and as much for a critic with a trunk of its own. */
export function checkpointBytes({ stages }: Pick<Recipe, "stages">, { trained }: TrainedShape): number {
  return 12 * trained * (hasOwnCritic(stages) ? 2 : 1);
}

/** Bytes of what a run keeps on disk at once: checkpoints (those kept, the best, and the one being written), and moments that lie there. */
export function diskBytes(recipe: Recipe, shape: TrainedShape): number {
  const moments = shape.momentsOnDisk ? 8 * shape.trained * (hasOwnCritic(recipe.stages) ? 2 : 1) : 0;
  return (recipe.checkpoint.keep + 2) * checkpointBytes(recipe, shape) + moments;
}
