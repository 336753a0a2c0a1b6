/** What `forager export` hands on: a checkpoint of a run, with what the run knows of it, or a model by itself. */
import { basename, dirname, join, parse, resolve } from "node:path";
import { loadRecipe } from "../config/load-recipe.ts";
import type { Recipe } from "../config/recipe.ts";
import type { Stage } from "../config/stage-options.ts";
import { CheckpointError, FileError, UsageError } from "../errors.ts";
import type { Checkpoint } from "../reporting/checkpoint-folders.ts";
import { RunFolder } from "../reporting/run-folder.ts";
import { exists } from "../shared/files.ts";
import type { HubOptions } from "../shared/hub.ts";
import { bestStep } from "../training/health.ts";
import { stepsBefore } from "../training/position.ts";
import { judgeValidation, untilOf } from "../training/stage-switch.ts";

export interface ExportSource {
  /** Names the model in its card and its file. */
  readonly name: string;
  /** Folder or GGUF file with the weights. */
  readonly path: string;
  /** As the user named it. */
  readonly source: string;
  readonly run?: ExportedRun;
}

export interface ExportedRun {
  readonly folder: RunFolder;
  readonly recipe: Recipe;
  /** Steps of all stages that made these weights. */
  readonly step: number;
}

/**
 * Finds the model. `checkpoint` is `last` (default), `best`, or the number of a step, of a run only. Throws `FileError`,
 * `CheckpointError`, `UsageError`, `ConfigError`, or what a download throws.
 */
export async function findExportSource(
  source: string,
  checkpoint: string | undefined,
  hub: HubOptions,
): Promise<ExportSource> {
  if (await exists(join(source, "recipe.yaml"))) {
    const folder = await RunFolder.open(source);
    const recipe = await loadRecipe(folder.recipePath);
    const { path, step } = await chooseCheckpoint(folder, recipe, checkpoint ?? "last");
    return { name: basename(resolve(source)), path, source, run: { folder, recipe, step } };
  }
  if (checkpoint !== undefined)
    throw new UsageError(`export: --checkpoint is for a run folder, and ${source} is none; leave it out`);
  const run = await runAround(source);
  if (run) return { name: basename(run.folder.path), path: source, source, run };
  const { locateModel } = await import("../engine/model-source.ts");
  const path = await locateModel(source, hub);
  return { name: nameOf(source), path, source };
}

/** The run that `path` is a checkpoint of. */
async function runAround(path: string): Promise<ExportedRun | undefined> {
  const [checkpoints, step] = [dirname(resolve(path)), basename(resolve(path))];
  const root = dirname(checkpoints);
  if (basename(checkpoints) !== "checkpoints" || !/^\d+$/.test(step)) return undefined;
  if (!(await exists(join(root, "recipe.yaml"))) || !(await exists(path))) return undefined;
  const folder = await RunFolder.open(root);
  return { folder, recipe: await loadRecipe(folder.recipePath), step: Number(step) };
}

/** The last part of a path without `.gguf`, or of `hf:owner/name@revision` the name. */
function nameOf(source: string): string {
  const last = parse(resolve(source.replace(/^hf:/, "").replace(/@.*$/, "")));
  return last.ext === ".gguf" ? last.name : last.base;
}

async function chooseCheckpoint(run: RunFolder, recipe: Recipe, wanted: string): Promise<Checkpoint> {
  const checkpoints = await run.checkpoints();
  const last = checkpoints.at(-1);
  if (last === undefined)
    throw new CheckpointError(
      `${run.path} has no checkpoint yet; train it first (forager train --resume ${run.path})`,
    );
  if (wanted === "last") return last;
  if (wanted !== "best" && !/^\d+$/.test(wanted))
    throw new UsageError(
      `export: --checkpoint is ${JSON.stringify(wanted)}; best, last or the number of a step was expected`,
    );
  const step = wanted === "best" ? await bestOf(run, recipe) : Number(wanted);
  const found = checkpoints.find((checkpoint) => checkpoint.step === step);
  if (found) return found;
  const which = wanted === "best" ? `the best step, ${step}` : `step ${step}`;
  throw new FileError(
    `${run.path} keeps no checkpoint of ${which}; there are ${checkpoints.map((one) => one.step).join(", ")}, choose one with --checkpoint`,
  );
}

/** The step, counted over all stages, after which the weights of the last stage that has begun were at their best. */
async function bestOf(run: RunFolder, recipe: Recipe): Promise<number> {
  const rows = await run.readMetrics();
  const name = rows.at(-1)?.stage;
  const stage = recipe.stages.findIndex((one) => one.name === name);
  if (stage === -1 || recipe.stages[stage]?.type !== "reinforcement")
    throw new UsageError(
      `export: ${run.path} has no reward yet that would say which checkpoint is best; use --checkpoint last`,
    );
  const history = rows.filter((row) => row.stage === name);
  const until = untilOf(recipe.stages[stage] as Stage);
  // What was chosen on validation questions is better known to be good than what earned most while it sampled.
  const chosen = until && judgeValidation(history, until).bestStep;
  return stepsBefore(recipe, { stage, step: chosen ?? bestStep(history) });
}
