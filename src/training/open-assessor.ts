/** From a recipe to the judge of its episodes. */
import { join } from "node:path";
import type { Recipe } from "../config/recipe.ts";
import type { Retriever } from "../retrieval/retriever.ts";
import { Assessor } from "./assessor.ts";
import { type FrozenWorld, openFrozenModels } from "./open-generator.ts";

/** The judge of a recipe with a planner or with `evaluation.judge`, else undefined. Throws what `openFrozenModels` throws. */
export async function openAssessor(
  recipe: Recipe,
  { retriever }: { readonly retriever: Retriever },
  world: FrozenWorld,
): Promise<Assessor | undefined> {
  const models = await openFrozenModels(recipe, world);
  return models && new Assessor({ recipe, models, retriever });
}

/** Where a run keeps what its generator answers without a planner. */
export function baselineFile(run: string): string {
  return join(run, "baselines.jsonl");
}
