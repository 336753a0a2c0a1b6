/** A model with the recipe it works by: the newest checkpoint of a run, a recipe and the model it names, or a model and a recipe. */
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { loadRecipe } from "../config/load-recipe.ts";
import { isServed, type ServedModel } from "../config/model-source-options.ts";
import type { Recipe } from "../config/recipe.ts";
import type { Engine } from "../engine/engine.ts";
import { findKnownModel } from "../engine/known-models.ts";
import { CheckpointError, FileError, UsageError } from "../errors.ts";
import type { RunPosition } from "../reporting/metric-row.ts";
import { RunFolder } from "../reporting/run-folder.ts";
import type { Closers } from "../shared/closers.ts";
import { exists } from "../shared/files.ts";
import { isHubReference } from "../shared/hub.ts";
import type { Watcher } from "../training/hub-settings.ts";
import { openEngine } from "../training/open-engine.ts";
import { type OpenedPolicy, openServedPolicy, recorded } from "../training/open-policy.ts";
import { openRanker } from "../training/open-ranker.ts";
import type { OpenedRanker } from "../training/opened-ranker.ts";
import { lastStep } from "../training/position.ts";
import { processWorld } from "../training/world.ts";

export interface ModelSource {
  readonly recipe: Recipe;
  /** A folder or whatever else `EmbeddedEngine.open` takes, the URL of an engine elsewhere, or a model that is asked elsewhere. */
  readonly model: string | ServedModel;
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
  if (isElsewhere(path)) return { recipe: await recipeFor(path, { recipePath, overrides }), model: path };
  if (!(await exists(path))) throw new FileError(`there is nothing at ${path}; check the path`);
  if (/\.ya?ml$/.test(path)) return await modelOfRecipe(path, { recipePath, overrides });
  if (await exists(join(path, "recipe.yaml"))) {
    const run = await RunFolder.open(path);
    const recipe = await loadRecipe(recipePath ?? run.recipePath, { overrides });
    const checkpoint = await run.latestCheckpoint();
    if (checkpoint === undefined)
      throw new CheckpointError(
        `${path} has no checkpoint yet; train it first (forager train --resume ${path})`,
      );
    const position = lastStep(await loadRecipe(run.recipePath), checkpoint.step);
    return { recipe, model: checkpoint.path, run, position };
  }
  if (!(await holdsModel(path)))
    throw new FileError(
      `${path} is neither a run (recipe.yaml) nor a recipe nor a model (config.json, adapter_config.json, .gguf); check the path`,
    );
  return { recipe: await recipeFor(path, { recipePath, overrides }), model: path };
}

/** A model of a hub, or one with a short name. */
function isElsewhere(target: string): boolean {
  return isHubReference(target) || findKnownModel(target) !== undefined;
}

async function holdsModel(path: string): Promise<boolean> {
  if (path.endsWith(".gguf")) return true;
  const names = (await stat(path)).isDirectory() ? await readdir(path) : [];
  return names.some((name) => /^(adapter_)?config\.json$|\.gguf$/.test(name));
}

async function recipeFor(path: string, { recipePath, overrides }: SourceOptions): Promise<Recipe> {
  if (recipePath === undefined)
    throw new UsageError(`${path} is a model; say with --recipe which rules and data it works with`);
  return await loadRecipe(recipePath, { overrides });
}

/** The model that a recipe starts from, untrained. */
async function modelOfRecipe(path: string, { recipePath, overrides }: SourceOptions): Promise<ModelSource> {
  if (recipePath !== undefined)
    throw new UsageError(`${path} is a recipe, and --recipe ${recipePath} another; name one of them`);
  const recipe = await loadRecipe(path, { overrides });
  if (isServed(recipe.model)) {
    const useless = overrides.find((override) => override.startsWith("engine."));
    if (useless !== undefined)
      throw new UsageError(`the model of ${path} is computed elsewhere; leave ${useless} (or --weights) out`);
    return { recipe, model: recipe.model };
  }
  if (recipe.engine.type === "tinker") return { recipe, model: recipe.engine.url };
  if (recipe.model.type === "fresh")
    throw new UsageError(`${path} makes a fresh model, which knows nothing yet; train it and name the run`);
  if (recipe.model.type === "remote")
    throw new UsageError(`the model of ${path} is behind an engine elsewhere; give it engine.type: tinker`);
  return { recipe, model: recipe.model.source };
}

/**
 * The policy of a model, recording where the recipe says so; `closers` gets what must be closed. `io` is told of downloads
 * and stops them.
 */
export async function openPolicy(
  { recipe, model, run }: ModelSource,
  io: Watcher,
  closers: Closers,
): Promise<OpenedPolicy> {
  const world = processWorld(io);
  const opened =
    typeof model === "string"
      ? openedOf(await engineOf({ recipe, model, run }, io), closers)
      : await openServedPolicy(model, world);
  return await recorded(opened, recipe.recordPolicy, { closers, world });
}

/** The engine with a model's weights; one elsewhere loads the checkpoint of a run that was trained there. */
async function engineOf(
  {
    recipe,
    model,
    run,
  }: { readonly recipe: Recipe; readonly model: string; readonly run: RunFolder | undefined },
  io: Watcher,
): Promise<Engine> {
  const { engine: options } = recipe;
  if (options.type === "embedded") return await openEngine(model, recipe, io);
  const { openTinker } = await import("../training/open-tinker.ts");
  const engine = await openTinker(
    { ...recipe, engine: options },
    {
      ...io,
      isTraining: false,
      ...(run !== undefined && { tokenizer: model }),
    },
  );
  try {
    if (run !== undefined) await engine.load(model);
    return engine;
  } catch (error) {
    await engine.close();
    throw error;
  }
}

function openedOf(engine: Engine, closers: Closers): OpenedPolicy {
  closers.defer(() => engine.close());
  const { tokenizer, contextLength } = engine;
  return { policy: engine.policy(), tokenizer, contextLength, concurrency: undefined };
}

/** The ranker of a model with a recipe that has one: from the run's checkpoint, else as the recipe names it. */
export async function openRankerOf(
  { recipe, model, run }: ModelSource,
  world: Parameters<typeof openRanker>[2],
): Promise<OpenedRanker | undefined> {
  return await openRanker(recipe, run && typeof model === "string" ? model : undefined, world);
}
