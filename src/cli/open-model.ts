/** A model with the recipe it works by: the newest checkpoint of a run, a recipe and the model it names, or a model and a recipe. */
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { loadRecipe } from "../config/load-recipe.ts";
import { isServed, type ServedModel } from "../config/model-source-options.ts";
import type { Recipe } from "../config/recipe.ts";
import type { Engine } from "../engine/engine.ts";
import { findKnownModel } from "../engine/known-models.ts";
import { profiles } from "../engine/tinker/profiles.ts";
import type { TinkerOptions } from "../engine/tinker/tinker-options.ts";
import { CheckpointError, FileError, UsageError } from "../errors.ts";
import type { RunPosition } from "../reporting/metric-row.ts";
import { RunFolder } from "../reporting/run-folder.ts";
import type { Closers } from "../shared/closers.ts";
import { exists } from "../shared/files.ts";
import { isHubReference } from "../shared/hub.ts";
import type { Watcher } from "../training/hub-settings.ts";
import { episodesAtOnce, openEngine } from "../training/open-engine.ts";
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
  /** Steps after which the checkpoint of a run was saved; absent: its newest. */
  readonly checkpoint?: number | undefined;
}

/** Finds the model at `path`. Throws `FileError`, `CheckpointError`, `UsageError` or `ConfigError`. */
export async function findModel(path: string, options: SourceOptions): Promise<ModelSource> {
  const { recipePath, overrides, checkpoint: step } = options;
  if (isElsewhere(path) && step === undefined)
    return { recipe: await recipeFor(path, { recipePath, overrides }), model: path };
  if (await exists(join(path, "recipe.yaml"))) return await modelOfRun(path, options);
  if (step !== undefined)
    throw new UsageError(`${path} is no run, so that it has no checkpoint ${step}; name a run`);
  if (!(await exists(path))) throw new FileError(`there is nothing at ${path}; check the path`);
  if (/\.ya?ml$/.test(path)) return await modelOfRecipe(path, { recipePath, overrides });
  if (!(await holdsModel(path)))
    throw new FileError(
      `${path} is neither a run (recipe.yaml) nor a recipe nor a model (config.json, adapter_config.json, .gguf); check the path`,
    );
  return { recipe: await recipeFor(path, { recipePath, overrides }), model: path };
}

/** A checkpoint of a run. Throws `CheckpointError` where it is not there. */
async function modelOfRun(
  path: string,
  { recipePath, overrides, checkpoint: wanted }: SourceOptions,
): Promise<ModelSource> {
  const run = await RunFolder.open(path);
  const recipe = await loadRecipe(recipePath ?? run.recipePath, { overrides });
  const all = await run.checkpoints();
  const checkpoint = wanted === undefined ? all.at(-1) : all.find(({ step }) => step === wanted);
  if (checkpoint === undefined)
    throw new CheckpointError(
      wanted === undefined || all.length === 0
        ? `${path} has no checkpoint yet; train it first (forager train --resume ${path})`
        : `${path} has no checkpoint ${wanted}; it has ${all.map(({ step }) => step).join(", ")}`,
    );
  const position = lastStep(await loadRecipe(run.recipePath), checkpoint.step);
  return { recipe, model: checkpoint.path, run, position };
}

/** A model of a hub, or one with a short name. */
function isElsewhere(target: string): boolean {
  return isHubReference(target) || findKnownModel(target) !== undefined;
}

async function holdsModel(path: string): Promise<boolean> {
  if (path.endsWith(".gguf")) return true;
  const names = (await stat(path)).isDirectory() ? await readdir(path) : [];
  return names.some((name) => /^(adapter_)?config\.json$|^remote\.json$|\.gguf$/.test(name));
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
  const { isRemoteCheckpoint } = await import("../engine/tinker/remote-checkpoint.ts");
  const isTrainedThere = run !== undefined || (await isRemoteCheckpoint(model));
  // Else the server's own model would be scored under the name of another.
  if (!isTrainedThere && model !== options.url)
    throw new UsageError(
      `the recipe has its model computed at ${options.url}, and ${model} is no checkpoint of an engine elsewhere; name the recipe itself to ask the server's model, or a recipe with the embedded engine`,
    );
  if (run !== undefined) await requireRoomBeside(run, options);
  const { openTinker } = await import("../training/open-tinker.ts");
  const engine = await openTinker(
    { ...recipe, engine: options },
    {
      ...io,
      isTraining: false,
      ...(isTrainedThere && { tokenizer: model }),
    },
  );
  try {
    if (isTrainedThere) await engine.load(model);
    return engine;
  } catch (error) {
    await engine.close();
    throw error;
  }
}

/** A server of one model has it taken while the run is trained there. Throws `UsageError`. */
async function requireRoomBeside(run: RunFolder, { profile, url }: TinkerOptions): Promise<void> {
  const { models, title } = profiles[profile];
  if (models !== "one" || !(await run.isBeingWritten())) return;
  const { engine } = await loadRecipe(run.recipePath);
  if (engine.type !== "tinker" || engine.url !== url) return;
  throw new UsageError(
    `${run.path} is being trained at ${url}, and ${title} has one model at a time; wait until it is over, or name another server that reads the same checkpoints (--set engine.url=URL)`,
  );
}

function openedOf(engine: Engine, closers: Closers): OpenedPolicy {
  closers.defer(() => engine.close());
  const { tokenizer, contextLength } = engine;
  return { policy: engine.policy(), tokenizer, contextLength, concurrency: episodesAtOnce(engine) };
}

/** The ranker of a model with a recipe that has one: from the run's checkpoint, else as the recipe names it. */
export async function openRankerOf(
  { recipe, model, run }: ModelSource,
  world: Parameters<typeof openRanker>[2],
): Promise<OpenedRanker | undefined> {
  return await openRanker(recipe, run && typeof model === "string" ? model : undefined, world);
}
