/** Whether an agent and a ranker with a model of its own fit into memory together. */
import type { Recipe } from "../config/recipe.ts";
import { EngineError } from "../errors.ts";
import type { OpenedRanker } from "./opened-ranker.ts";
import { gigabytes, type MemoryPlan, planMemory, requireMemory } from "./plan-training.ts";

/** Throws `EngineError` with the numbers and what to change where they do not; both stay loaded throughout. */
export function requireMemoryWithRanker(
  recipe: Recipe,
  agent: Pick<MemoryPlan, "peak" | "available">,
  ranker: OpenedRanker | undefined,
): void {
  if (ranker?.model === undefined) return;
  const own = planMemory(recipe, ranker.model);
  requireMemory(recipe, own);
  const peak = agent.peak + own.peak;
  if (peak <= agent.available) return;
  throw new EngineError(
    `agent and ranker need ${gigabytes(peak)} together (${gigabytes(agent.peak)} and ${gigabytes(own.peak)}), this machine has ${gigabytes(agent.available)}; set ranker.weights: shared, train adapters (engine.lora), lower engine.memoryBudget, or use smaller models`,
  );
}
