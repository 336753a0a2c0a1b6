/**
 * The models of this machine that stay loaded beside the one that is trained: a ranker with weights of its own, a planner's
 * generator, a judge. Whether all fit into memory together follows from their shapes.
 */
import { isServed, type ModelSourceOptions } from "../config/model-source-options.ts";
import type { Recipe } from "../config/recipe.ts";
import { samplingBytes } from "../engine/memory-estimate.ts";
import type { ModelOptions } from "../engine/model-options.ts";
import { EngineError } from "../errors.ts";
import { embeddedSection, engineOptions } from "./engine-options.ts";
import { episodeTokens } from "./episode-tokens.ts";
import type { Watcher } from "./hub-settings.ts";
import { modelShape } from "./model-shape.ts";
import { gigabytes, type MemoryPlan, memoryProblem, planMemory } from "./plan-training.ts";

export type CompanionPart = "ranker" | "generator" | "judge";

export interface Companion {
  readonly part: CompanionPart;
  /** Most that it takes, resident at once. */
  readonly bytes: number;
  /** Why it does not fit even alone. */
  readonly problem?: string | undefined;
}

/** The companions of a recipe, in the order they are opened. Reads headers; throws what `modelShape` throws. */
export async function planCompanions(recipe: Recipe, watcher: Watcher): Promise<Companion[]> {
  const plans: Companion[] = [];
  for (const { part, model } of companionModels(recipe))
    if (!isServed(model)) plans.push(planOne(recipe, part, await modelShape(model, watcher)));
  return plans;
}

function companionModels({ ranker, generator, planner, evaluation }: Recipe): {
  readonly part: CompanionPart;
  readonly model: ModelSourceOptions;
}[] {
  const judge = planner?.judge ?? evaluation.judge;
  const named: readonly (readonly [CompanionPart, ModelSourceOptions | undefined])[] = [
    ["ranker", ranker?.type === "generative" && ranker.weights === "own" ? ranker.model : undefined],
    ["generator", generator?.model],
    ["judge", judge?.type === "model" ? judge.model : undefined],
    ["judge", ranker?.type === "generative" && ranker.trainable ? ranker.judge?.model : undefined],
  ];
  return named.flatMap(([part, model]) => (model === undefined ? [] : [{ part, model }]));
}

/** A ranker has an engine that could train; the others are asked alone. */
function planOne(recipe: Recipe, part: CompanionPart, model: ModelOptions): Companion {
  if (part === "ranker") {
    const plan = planMemory(recipe, model);
    return { part, bytes: plan.peak, problem: memoryProblem(recipe, plan) };
  }
  const { maxSlots, cacheMemory } = engineOptions(recipe);
  const longest = episodeTokens(recipe.environment) + (recipe.generator?.maxAnswerTokens ?? 0);
  const bytes = samplingBytes(model, {
    slots: maxSlots,
    tokens: Math.min(longest, model.contextLength),
    cacheMemory: cacheMemory as number,
    weights: embeddedSection(recipe.engine).samplingWeights,
  });
  return { part, bytes };
}

/** Why the agent and its companions do not fit together, in a sentence; undefined where they do. */
export function companionProblem(
  agent: Pick<MemoryPlan, "peak" | "available">,
  companions: readonly Companion[],
): string | undefined {
  for (const { part, problem } of companions) if (problem !== undefined) return `the ${part}: ${problem}`;
  const whole = totalPeak(agent, companions);
  if (companions.length === 0 || whole <= agent.available) return undefined;
  const parts = [
    `agent ${gigabytes(agent.peak)}`,
    ...companions.map(({ part, bytes }) => `${part} ${gigabytes(bytes)}`),
  ];
  const changes = [
    ...(companions.some(({ part }) => part === "ranker") ? ["set ranker.weights: shared"] : []),
    ...(companions.some(({ part }) => part !== "ranker") ? ["serve what is only asked (type: openai)"] : []),
    "train adapters (engine.lora)",
    "lower engine.memoryBudget or engine.cacheMemory",
    "use smaller models",
  ];
  return `the models need ${gigabytes(whole)} together (${parts.join(", ")}), this machine has ${gigabytes(agent.available)}; ${changes.slice(0, -1).join(", ")}, or ${changes.at(-1)}`;
}

/** Most that all of them take at once. */
export function totalPeak({ peak }: Pick<MemoryPlan, "peak">, companions: readonly Companion[]): number {
  return companions.reduce((sum, { bytes }) => sum + bytes, peak);
}

/** Throws `EngineError` with the numbers and what to change where they do not fit. */
export function requireRoomForAll(
  agent: Pick<MemoryPlan, "peak" | "available">,
  companions: readonly Companion[],
): void {
  const problem = companionProblem(agent, companions);
  if (problem !== undefined) throw new EngineError(problem);
}
