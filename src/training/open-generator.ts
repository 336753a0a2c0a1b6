/** Opens the models of a planner's recipe that are asked and never trained: the generator, and a judge that is a model. */
import { join } from "node:path";
import { isServed, type ModelSourceOptions } from "../config/model-source-options.ts";
import type { Recipe } from "../config/recipe.ts";
import { CheckpointError, ConfigError } from "../errors.ts";
import { RunFolder } from "../reporting/run-folder.ts";
import type { Judge } from "../reward/judge.ts";
import type { Generator } from "../rollout/generator.ts";
import type { Closers } from "../shared/closers.ts";
import { exists } from "../shared/files.ts";
import type { Watcher } from "./hub-settings.ts";
import { openEngine } from "./open-engine.ts";
import { openServedPolicy } from "./open-policy.ts";
import { processWorld } from "./world.ts";

/** The frozen models of a recipe. */
export interface FrozenModels {
  readonly generator: Generator;
  readonly judge: Judge;
  /** Grades searches; absent where a rule does, or nobody. */
  readonly grader?: Generator | undefined;
}

export interface FrozenWorld {
  readonly watcher?: Watcher | undefined;
  /** Gets what must be closed. */
  readonly closers: Closers;
}

/**
 * The frozen models; undefined for a recipe without a planner. Throws `ConfigError`, `CheckpointError` for a run without a
 * checkpoint, and what opening a model throws.
 */
export async function openFrozenModels(
  recipe: Recipe,
  world: FrozenWorld,
): Promise<FrozenModels | undefined> {
  const { generator: named, planner, environment } = recipe;
  if (named === undefined || planner === undefined) return undefined;
  const { model, ...options } = named;
  const { today } = environment;
  const opened = await openFrozen(model, recipe, world);
  const generator: Generator = { ...opened, options, today };
  const { judge } = planner;
  const limits = { ...options, temperature: 0 };
  const asker = (source: Pick<Generator, "policy" | "tokenizer" | "contextLength">): Generator => ({
    ...source,
    today,
    options: { ...limits, maxAnswerTokens: judge.type === "model" ? judge.maxTokens : 32 },
  });
  if (judge.type === "rule") {
    const grader = planner.process === "model" ? asker(opened) : undefined;
    return { generator, judge: { rule: judge.rule }, grader };
  }
  const other = judge.model === undefined ? opened : await openFrozen(judge.model, recipe, world);
  const judging = asker(other);
  return {
    generator,
    judge: { rule: judge.rule, model: judging },
    grader: planner.process === "model" ? judging : undefined,
  };
}

async function openFrozen(
  model: ModelSourceOptions,
  { engine }: Recipe,
  { watcher, closers }: FrozenWorld,
): Promise<Pick<Generator, "policy" | "tokenizer" | "contextLength">> {
  if (isServed(model)) return await openServedPolicy(model, processWorld(watcher));
  if (model.type === "fresh")
    throw new ConfigError("a fresh model knows nothing; name one that exists", { path: "generator.model" });
  const opened = await openEngine(await checkpointOf(model.source), { engine, stages: [] }, watcher);
  closers.defer(() => opened.close());
  const { tokenizer, contextLength } = opened;
  return { policy: opened.policy(), tokenizer, contextLength };
}

/** The newest checkpoint where `source` is a run, else `source` itself. */
async function checkpointOf(source: string): Promise<string> {
  if (!(await exists(join(source, "recipe.yaml")))) return source;
  const checkpoint = await (await RunFolder.open(source)).latestCheckpoint();
  if (checkpoint === undefined)
    throw new CheckpointError(`the run ${source} has no checkpoint yet; train it first`);
  return checkpoint.path;
}
