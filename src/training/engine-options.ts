/** The options of the embedded engine that a recipe asks for. */
import { availableParallelism, totalmem } from "node:os";
import type { Recipe } from "../config/recipe.ts";
import type { EmbeddedEngineOptions } from "../engine/embedded-engine.ts";
import type { EnvironmentOptions } from "../environment/environment-options.ts";
import { byteSize } from "../shared/byte-size.ts";

/** Threads default to all cores; there are slots for all episodes of a step, 32 to 128. */
export function engineOptions({
  engine,
  stages,
  environment,
}: Pick<Recipe, "engine" | "stages"> & Partial<Pick<Recipe, "environment">>): EmbeddedEngineOptions {
  const episodes = stages.map((stage) =>
    stage.type === "reinforcement" ? stage.questionsPerStep * stage.algorithm.groupSize : 0,
  );
  return {
    threads: engine.threads ?? availableParallelism(),
    memoryBudget: memoryBudget(engine),
    ...(engine.tokenBudget !== undefined && { tokenBudget: engine.tokenBudget }),
    ...(environment && { longestSequence: episodeTokens(environment) }),
    maxSlots: Math.min(128, Math.max(32, ...episodes)),
    cacheMemory: byteSize(engine.cacheMemory) as number,
    samplingWeights: engine.samplingWeights,
  };
}

/** The share of the machine's memory that training may take where the recipe does not say. */
const defaultShare = 0.75;

/** Bytes that training may take. */
export function memoryBudget({ memoryBudget: size }: Pick<Recipe["engine"], "memoryBudget">): number {
  return size === undefined ? Math.floor(defaultShare * machineMemory()) : (byteSize(size) as number);
}

/** Bytes of memory of this machine, or of the part of it that this process may have. */
export function machineMemory(): number {
  return Math.min(totalmem(), process.constrainedMemory() || Number.POSITIVE_INFINITY);
}

/** Tokens that are allowed for a prompt before any has been read. */
export const promptAllowance = 384;

/** Tokens of the longest episode: a prompt, and every turn and observation as long as it may be. */
export function episodeTokens({
  mode,
  maxSearches,
  maxTurnTokens,
  maxObservationTokens,
}: Pick<EnvironmentOptions, "mode" | "maxSearches" | "maxTurnTokens" | "maxObservationTokens">): number {
  const searches = mode === "search" ? maxSearches : 0;
  const observations = mode === "rag" ? 1 : searches;
  return promptAllowance + (searches + 1) * maxTurnTokens + observations * maxObservationTokens;
}
