/** The options of the embedded engine that a recipe asks for. */
import { availableParallelism } from "node:os";
import type { Recipe } from "../config/recipe.ts";
import type { EmbeddedEngineOptions } from "../engine/embedded-engine.ts";
import { byteSize } from "../shared/byte-size.ts";

/** Threads default to all cores; there are slots for all episodes of a step, 32 to 128. */
export function engineOptions({ engine, stages }: Pick<Recipe, "engine" | "stages">): EmbeddedEngineOptions {
  const episodes = stages.map((stage) =>
    stage.type === "reinforcement" ? stage.questionsPerStep * stage.algorithm.groupSize : 0,
  );
  return {
    threads: engine.threads ?? availableParallelism(),
    tokenBudget: engine.tokenBudget,
    maxSlots: Math.min(128, Math.max(32, ...episodes)),
    cacheMemory: byteSize(engine.cacheMemory) as number,
  };
}
