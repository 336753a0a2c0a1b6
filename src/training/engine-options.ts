/** The options of the embedded engine that a recipe asks for. */
import { availableParallelism, tmpdir, totalmem } from "node:os";
import type { Recipe } from "../config/recipe.ts";
import type { EmbeddedEngineOptions } from "../engine/embedded-engine.ts";
import { byteSize } from "../shared/byte-size.ts";
import { episodeTokens } from "./episode-tokens.ts";

/**
 * Threads default to all cores; there are slots for all episodes of a step, 32 to 128. Moments that are to lie on disk lie in
 * `folder`, which must exist by the first step.
 */
export function engineOptions(
  { engine, stages, environment }: Pick<Recipe, "engine" | "stages"> & Partial<Pick<Recipe, "environment">>,
  folder: string = tmpdir(),
): EmbeddedEngineOptions {
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
    ...(engine.optimizerState === "disk" && { momentsFolder: folder }),
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
