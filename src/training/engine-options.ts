/** The options of the embedded engine that a recipe asks for. */
import { availableParallelism, tmpdir, totalmem } from "node:os";
import { type EmbeddedSection, embeddedOptionsSchema, type Recipe } from "../config/recipe.ts";
import type { EmbeddedEngineOptions } from "../engine/embedded-engine.ts";
import { byteSize } from "../shared/byte-size.ts";
import { episodeTokens } from "./episode-tokens.ts";

/**
 * Threads default to all cores; there are slots for all episodes of a step, 32 to 128. Moments that are to lie on disk lie in
 * `folder`, which must exist by the first step.
 */
export function engineOptions(
  {
    engine: named,
    stages,
    environment,
  }: Pick<Recipe, "engine" | "stages"> & Partial<Pick<Recipe, "environment">>,
  folder: string = tmpdir(),
): EmbeddedEngineOptions {
  const engine = embeddedSection(named);
  const episodes = stages.map((stage) =>
    stage.type === "reinforcement" ? stage.questionsPerStep * stage.algorithm.groupSize : 0,
  );
  return {
    threads: engine.threads ?? availableParallelism(),
    memoryBudget: memoryBudget(engine),
    machineMemory: machineMemory(),
    ...(engine.tokenBudget !== undefined && { tokenBudget: engine.tokenBudget }),
    ...(environment && { longestSequence: episodeTokens(environment) }),
    maxSlots: Math.min(128, Math.max(32, ...episodes)),
    cacheMemory: byteSize(engine.cacheMemory) as number,
    samplingWeights: engine.samplingWeights,
    ...(engine.optimizerState === "disk" && { momentsFolder: folder }),
  };
}

/**
 * What a recipe says of the embedded engine. Beside an engine elsewhere, models that are only asked (a generator, a judge) are
 * still computed here, with what is usual.
 */
export function embeddedSection(engine: Recipe["engine"]): EmbeddedSection {
  return engine.type === "embedded" ? engine : embeddedOptionsSchema.parse({});
}

/** The share of the machine's memory that training may take where the recipe does not say. */
const defaultShare = 0.75;

/** Bytes that training may take. */
export function memoryBudget(engine: Recipe["engine"]): number {
  const { memoryBudget: size } = embeddedSection(engine);
  return size === undefined ? Math.floor(defaultShare * machineMemory()) : (byteSize(size) as number);
}

/** Bytes of memory of this machine, or of the part of it that this process may have. */
export function machineMemory(): number {
  return Math.min(totalmem(), process.constrainedMemory() || Number.POSITIVE_INFINITY);
}
