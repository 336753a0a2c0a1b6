/** A trained model with the recipe it was trained by: the newest checkpoint of a run, or a model folder and a recipe. */
import { join } from "node:path";
import { loadRecipe } from "../config/load-recipe.ts";
import type { Recipe } from "../config/recipe.ts";
import type { EmbeddedEngine } from "../engine/embedded-engine.ts";
import { CheckpointError, FileError, UsageError } from "../errors.ts";
import type { Checkpoint } from "../reporting/checkpoint-folders.ts";
import type { RunPosition } from "../reporting/metric-row.ts";
import { RunFolder } from "../reporting/run-folder.ts";
import { exists } from "../shared/files.ts";
import { openEngine } from "../training/open-engine.ts";
import { positionAfter } from "../training/position.ts";

export interface ModelSource {
  readonly recipe: Recipe;
  /** The model folder. */
  readonly model: string;
  /** The run it belongs to, and the step after which it was saved. */
  readonly run?: RunFolder;
  readonly position?: RunPosition;
}

export interface SourceOptions {
  /** Needed for a model folder; a run has its own. */
  readonly recipePath?: string | undefined;
  readonly overrides: readonly string[];
}

/** Finds the model at `path`. Throws `FileError`, `CheckpointError`, `UsageError` or `ConfigError`. */
export async function findModel(
  path: string,
  { recipePath, overrides }: SourceOptions,
): Promise<ModelSource> {
  if (!(await exists(path))) throw new FileError(`there is nothing at ${path}; check the path`);
  if (await exists(join(path, "recipe.yaml"))) {
    const run = await RunFolder.open(path);
    const recipe = await loadRecipe(recipePath ?? run.recipePath, { overrides });
    const checkpoint = await run.latestCheckpoint();
    if (checkpoint === undefined)
      throw new CheckpointError(
        `${path} has no checkpoint yet; train it first (forager train --resume ${path})`,
      );
    const position = placeOf(await loadRecipe(run.recipePath), checkpoint);
    return { recipe, model: checkpoint.path, run, position };
  }
  if (!(await exists(join(path, "config.json"))))
    throw new FileError(
      `${path} is neither a run (recipe.yaml) nor a model folder (config.json); check the path`,
    );
  if (recipePath === undefined)
    throw new UsageError(`${path} is a model folder; say with --recipe which rules and data it works with`);
  return { recipe: await loadRecipe(recipePath, { overrides }), model: path };
}

/** The stage and step a checkpoint was made after. */
function placeOf(recipe: Recipe, { step }: Checkpoint): RunPosition {
  const { stage, step: done } = positionAfter(recipe, Math.max(0, step - 1));
  return { stage: recipe.stages[stage]?.name ?? "", step: step === 0 ? 0 : done + 1 };
}

/** The engine with the model's weights; close it after use. */
export async function openModel({ recipe, model }: ModelSource): Promise<EmbeddedEngine> {
  return await openEngine(model, recipe);
}
