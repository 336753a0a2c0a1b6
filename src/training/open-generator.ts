/** Opens the models of a recipe that are asked and never trained: a planner's generator, and a judge that is a model. */
import { isServed, type ModelSourceOptions, type TrainableModel } from "../config/model-source-options.ts";
import type { AnswerJudge } from "../config/planner-options.ts";
import type { GenerativeRankerOptions } from "../config/ranker-options.ts";
import type { Recipe } from "../config/recipe.ts";
import { assert, ConfigError } from "../errors.ts";
import type { Judge } from "../reward/judge.ts";
import type { Generator } from "../rollout/generator.ts";
import type { Closers } from "../shared/closers.ts";
import type { Watcher } from "./hub-settings.ts";
import { checkpointOf } from "./model-shape.ts";
import { openEngine } from "./open-engine.ts";
import { type OpenedPolicy, openServedPolicy, recorded, recordingOf } from "./open-policy.ts";
import type { RankingGrader } from "./ranking-grader.ts";
import { processWorld } from "./world.ts";

/** The frozen models of a recipe. */
export interface FrozenModels {
  /** Mode planner alone. */
  readonly generator?: Generator | undefined;
  readonly judge: Judge;
  /** Grades searches; absent where a rule does, or nobody. */
  readonly grader?: Generator | undefined;
}

export interface FrozenWorld {
  readonly watcher?: Watcher | undefined;
  /** Gets what must be closed. */
  readonly closers: Closers;
  /** True: completions are recorded beside `recordPolicy`, where the recipe has it. */
  readonly records?: boolean | undefined;
}

/**
 * The frozen models; undefined for a recipe without a planner and without a judge. Throws `ConfigError`, `CheckpointError`
 * for a run without a checkpoint, and what opening a model throws.
 */
export async function openFrozenModels(
  recipe: Recipe,
  world: FrozenWorld,
): Promise<FrozenModels | undefined> {
  const { generator: named, planner, environment, evaluation } = recipe;
  if (named === undefined || planner === undefined)
    return evaluation.judge && { judge: await openJudge(evaluation.judge, recipe, world) };
  const { model, ...options } = named;
  const { today } = environment;
  const opened = await openFrozen({ model, part: "generator" }, recipe, world);
  const generator: Generator = { ...opened, options, today };
  const { judge } = planner;
  if (judge.type === "rule") {
    const grader = planner.process === "model" ? askerOf(opened, 32, recipe) : undefined;
    return { generator, judge: { rule: judge.rule }, grader };
  }
  const opening = await openJudge(judge, recipe, { ...world, generator: opened });
  return { generator, judge: opening, grader: planner.process === "model" ? opening.model : undefined };
}

/** A judge; without a model of its own the generator judges. */
async function openJudge(
  judge: AnswerJudge,
  recipe: Recipe,
  world: FrozenWorld & { readonly generator?: Opened },
): Promise<Judge> {
  if (judge.type === "rule") return { rule: judge.rule };
  const { model, maxTokens, rule } = judge;
  const asked =
    model === undefined ? world.generator : await openFrozen({ model, part: "judge" }, recipe, world);
  assert(asked !== undefined, "a judge that is a model has one");
  return { rule, model: askerOf(asked, maxTokens, recipe) };
}

type Opened = Pick<Generator, "policy" | "tokenizer" | "contextLength">;

/** A model that judges or grades, greedily and in few words; through its chat template as the generator is. */
function askerOf(opened: Opened, maxAnswerTokens: number, { generator, environment }: Recipe): Generator {
  const options = {
    prompt: "record",
    chat: generator?.chat ?? "auto",
    temperature: 0,
    maxAnswerTokens,
  } as const;
  return { ...opened, today: environment.today, options };
}

/** The model that grades a ranker's rankings while it is trained. Throws what opening a model throws. */
export async function openRankingJudge(
  { model, temperature, maxTokens, samples }: NonNullable<GenerativeRankerOptions["judge"]>,
  recipe: Recipe,
  world: FrozenWorld,
): Promise<Omit<RankingGrader, "seed">> {
  const opened = await openFrozen({ model, part: "judge" }, recipe, world);
  const asker = askerOf(opened, maxTokens, recipe);
  return { samples, model: { ...asker, options: { ...asker.options, temperature } } };
}

/** Which of the frozen models; names its recording. */
type FrozenPart = "generator" | "judge";

async function openFrozen(
  { model, part }: { readonly model: ModelSourceOptions; readonly part: FrozenPart },
  recipe: Recipe,
  { watcher, closers, records = false }: FrozenWorld,
): Promise<Opened> {
  const world = processWorld(watcher);
  const opened = isServed(model)
    ? await openServedPolicy(model, world)
    : await openOwn(model, recipe, { watcher, closers });
  const file = records ? recordingOf(recipe.recordPolicy, part) : undefined;
  return await recorded(opened, file, { closers, world });
}

async function openOwn(
  model: TrainableModel,
  { engine }: Recipe,
  { watcher, closers }: FrozenWorld,
): Promise<OpenedPolicy> {
  if (model.type === "fresh")
    throw new ConfigError("a fresh model knows nothing; name one that exists", { path: "generator.model" });
  const opened = await openEngine(await checkpointOf(model.source), { engine, stages: [] }, watcher);
  closers.defer(() => opened.close());
  const { tokenizer, contextLength } = opened;
  return { policy: opened.policy(), tokenizer, contextLength, concurrency: undefined };
}
