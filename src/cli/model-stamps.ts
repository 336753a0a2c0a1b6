/**
 * Which models an evaluation asks, and a stamp of what they are now: what was measured is only taken for current where no model
 * is another, has other files or is asked otherwise. Files are known by path, size and time; a name of a hub stands for itself.
 */
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { isServed, type ModelSourceOptions, type ServedModel } from "../config/model-source-options.ts";
import type { RankerOptions } from "../config/ranker-options.ts";
import { exists } from "../shared/files.ts";
import { canonicalJson, sha256 } from "../shared/hash.ts";
import { checkpointOf } from "../training/model-shape.ts";
import { rankerFolder } from "../training/opened-ranker.ts";
import type { ModelSource } from "./open-model.ts";

/** A model that is here, or on a hub, by its source; else how it is asked. */
export type AskedModel = string | ServedModel;

type AskingSource = Pick<ModelSource, "recipe" | "model" | "run">;

/** The agent's model, then those of ranker, generator and judge, where there are any. Throws `CheckpointError` for a run without a checkpoint. */
export async function modelsAsked({ recipe, model, run }: AskingSource): Promise<readonly AskedModel[]> {
  const { ranker, generator, planner, evaluation } = recipe;
  const judge = planner?.judge ?? evaluation.judge;
  const checkpoint = run && typeof model === "string" ? model : undefined;
  return [
    model,
    ...(await rankerAsked(ranker, checkpoint)),
    ...(generator ? [await asked(generator.model)] : []),
    ...(judge?.type === "model" && judge.model ? [await asked(judge.model)] : []),
  ];
}

/** One with weights of its own; within `checkpoint`, where it was trained. */
async function rankerAsked(
  ranker: RankerOptions | undefined,
  checkpoint: string | undefined,
): Promise<readonly AskedModel[]> {
  if (ranker?.type !== "generative" || ranker.weights !== "own" || ranker.model === undefined) return [];
  if (isServed(ranker.model)) return [ranker.model];
  const saved = checkpoint && rankerFolder(checkpoint);
  return [saved !== undefined && (await exists(saved)) ? saved : await asked(ranker.model)];
}

async function asked(model: ModelSourceOptions): Promise<AskedModel> {
  if (isServed(model)) return model;
  return model.type === "fresh" ? "fresh" : await checkpointOf(model.source);
}

/**
 * A hash of the models of `source` as they are now, and of how long a judge may reply, which no contract tells. Throws
 * `CheckpointError` for a run without a checkpoint.
 */
export async function modelStamp(source: AskingSource): Promise<string> {
  const { planner, evaluation } = source.recipe;
  const judge = planner?.judge ?? evaluation.judge;
  const maxTokens = judge?.type === "model" ? judge.maxTokens : null;
  return sha256(canonicalJson([await stampOf(await modelsAsked(source)), maxTokens]));
}

/** A hash that changes with the models, with their files and with how served ones are asked. */
export async function stampOf(models: readonly AskedModel[]): Promise<string> {
  return sha256(canonicalJson(await Promise.all(models.map(describeNow))));
}

async function describeNow(model: AskedModel): Promise<unknown> {
  if (typeof model === "string") return [model, await filesOf(model)];
  return model.type === "replay" ? [model, await filesOf(model.file)] : askedHow(model);
}

/** Paths, sizes and times of a model's files; empty for a name that is no path. */
async function filesOf(model: string): Promise<readonly string[]> {
  if (!(await exists(model))) return [];
  const isFolder = (await stat(model)).isDirectory();
  const paths = isFolder ? (await readdir(model)).sort().map((name) => join(model, name)) : [model];
  const stamps = paths.map(async (path) => {
    const { size, mtimeMs } = await stat(path);
    return `${path} ${size} ${mtimeMs}`;
  });
  return await Promise.all(stamps);
}

/** What completions depend on: neither budget and price nor what is done about failures. */
function askedHow(model: Extract<ServedModel, { type: "openai" }>): unknown {
  const {
    budget: _,
    price: __,
    retries: ___,
    backoffMs: ____,
    timeoutMs: _____,
    concurrency: ______,
    ...how
  } = model;
  return how;
}
