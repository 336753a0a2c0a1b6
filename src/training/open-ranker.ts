/** From a recipe to who chooses the passages of each search: a model that is made or opened, or the oracle. */
import { isServed, type TrainableModel } from "../config/model-source-options.ts";
import type { GenerativeRankerOptions } from "../config/ranker-options.ts";
import type { Recipe } from "../config/recipe.ts";
import type { Engine } from "../engine/engine.ts";
import { rankingTags } from "../environment/ranking-codec.ts";
import { assert, ConfigError } from "../errors.ts";
import type { GenerativeRanker } from "../rollout/ranked-search.ts";
import type { Closers } from "../shared/closers.ts";
import { exists } from "../shared/files.ts";
import { embeddedSection } from "./engine-options.ts";
import { freshPolicy } from "./fresh-policy.ts";
import type { Watcher } from "./hub-settings.ts";
import { createEmbedded, openEngine } from "./open-engine.ts";
import { openRankingJudge } from "./open-generator.ts";
import { openServedPolicy, recorded, recordingOf } from "./open-policy.ts";
import { type OpenedRanker, rankerFolder } from "./opened-ranker.ts";
import type { TrainingData } from "./setup.ts";
import { processWorld } from "./world.ts";

export interface RankerWorld {
  readonly watcher?: Watcher | undefined;
  /** Where the ranker's engine may keep what does not fit into memory; absent: a folder for temporary files. */
  readonly folder?: string;
  /** Gets what must be closed. */
  readonly closers: Closers;
  /** True: rankings are recorded beside `recordPolicy`, where the recipe has it. */
  readonly records?: boolean | undefined;
}

/** The ranker of a training, untrained; undefined where the recipe has none. Throws `ConfigError` where a stage needs one. */
export async function createRanker(
  recipe: Recipe,
  data: TrainingData,
  world: RankerWorld & { readonly agent: Engine },
): Promise<OpenedRanker | undefined> {
  const { ranker } = recipe;
  const opened = await createUnjudged(recipe, data, world);
  const judge = ranker?.type === "generative" && ranker.trainable ? ranker.judge : undefined;
  return opened && judge ? { ...opened, judge: await openRankingJudge(judge, recipe, world) } : opened;
}

async function createUnjudged(
  recipe: Recipe,
  data: TrainingData,
  world: RankerWorld & { readonly agent: Engine },
): Promise<OpenedRanker | undefined> {
  const { ranker } = recipe;
  const { agent } = world;
  requireTaught(recipe);
  const { today } = recipe.environment;
  if (ranker?.type === "generative" && ranker.weights === "shared")
    return withEngine(ranker, { engine: agent, isOwn: false, today });
  if (ranker?.type !== "generative" || isServedRanker(ranker))
    return await openRanker(recipe, undefined, { ...world, agent: { policy: agent.policy() } });
  assert(ranker.model !== undefined, "a ranker with weights of its own has a model");
  // What differs between the two is the model and the tags that its tokenizer must know.
  const engineOfOwn = embeddedSection(recipe.engine);
  const own = { ...recipe, engine: engineOfOwn, model: ranker.model, seed: recipe.seed + 1 };
  const place = world.folder === undefined ? {} : { folder: world.folder };
  const engine = await createEmbedded(own, data, { ...world.watcher, ...place, tags: rankingTags });
  world.closers.defer(() => engine.close());
  return { ...withEngine(ranker, { engine, isOwn: true, today }), model: engine.model };
}

/** An evaluation may put another ranker in the place of the one that was trained; a training may not. */
function requireTaught({ ranker, stages }: Recipe): void {
  const stage = stages.find((each) => each.type === "supervised" && each.teacher.type === "ranking");
  if (stage === undefined || ranker?.type === "generative") return;
  throw new ConfigError(
    `stage ${stage.name} trains a generative ranker, and the recipe has none; add ranker, or choose another teacher`,
    { path: `stages.${stage.name}.teacher.type` },
  );
}

/** Who asks for rankings with its own weights. */
type Asked = Pick<GenerativeRanker, "policy" | "tokenizer" | "contextLength">;

/**
 * The ranker of an evaluation: as `checkpoint` holds it, else as its model is. Throws `ConfigError` for a fresh one, which
 * knows nothing yet, and what opening a model throws.
 */
export async function openRanker(
  recipe: Recipe,
  checkpoint: string | undefined,
  { watcher, closers, agent, records = false }: RankerWorld & { readonly agent: Asked },
): Promise<OpenedRanker | undefined> {
  const { ranker } = recipe;
  if (ranker === undefined || ranker.type === "none") return undefined;
  if (ranker.type === "oracle")
    return {
      options: ranker,
      isOwn: false,
      sampling: () => ({ type: "oracle", candidates: ranker.candidates }),
    };
  const { today } = recipe.environment;
  if (ranker.weights === "shared") return asked(ranker, { ...agent, today });
  const { model } = ranker;
  assert(model !== undefined, "a ranker with weights of its own has a model");
  const world = processWorld(watcher);
  const file = records ? recordingOf(recipe.recordPolicy, "ranker") : undefined;
  if (isServed(model))
    return asked(ranker, {
      ...(await recorded(await openServedPolicy(model, world), file, { closers, world })),
      today,
    });
  const saved = checkpoint && rankerFolder(checkpoint);
  const source = saved !== undefined && (await exists(saved)) ? saved : sourceOf(model);
  const engine = await openEngine(source, recipe, watcher);
  closers.defer(() => engine.close());
  if (file === undefined) return withEngine(ranker, { engine, isOwn: true, today });
  const { tokenizer, contextLength } = engine;
  const opened = { policy: engine.policy(), tokenizer, contextLength, concurrency: undefined };
  return asked(ranker, { ...(await recorded(opened, file, { closers, world })), today });
}

function isServedRanker({ model }: GenerativeRankerOptions): boolean {
  return model !== undefined && isServed(model);
}

function sourceOf(model: TrainableModel): string {
  if (model.type === "pretrained") return model.source;
  throw new ConfigError("a fresh ranker knows nothing yet; train it and name the run", {
    path: "ranker.model",
  });
}

/** The day that the ranker's chat template is told. */
interface Dated {
  readonly today: string | undefined;
}

/** A ranker that is only asked. */
function asked(
  options: GenerativeRankerOptions,
  { policy, tokenizer, contextLength, today }: Asked & Dated,
): OpenedRanker {
  return {
    options,
    isOwn: false,
    sampling: (sampling) => ({ ...fields(options, today), policy, tokenizer, contextLength, sampling }),
  };
}

function withEngine(
  options: GenerativeRankerOptions,
  { engine, isOwn, today }: Dated & { readonly engine: Engine; readonly isOwn: boolean },
): OpenedRanker {
  return {
    options,
    engine,
    isOwn,
    sampling: (sampling) => ({
      ...fields(options, today),
      // With shared weights the agent's rollouts have forgotten what was kept already.
      policy: isOwn ? freshPolicy(engine) : engine.policy(),
      tokenizer: engine.tokenizer,
      contextLength: engine.contextLength,
      sampling,
    }),
  };
}

function fields(
  options: GenerativeRankerOptions,
  today: string | undefined,
): Omit<GenerativeRanker, "policy" | "sampling"> {
  const { candidates, maxTokens, prompt, passages, maxPassageCharacters, chat } = options;
  return {
    type: "generative",
    candidates,
    maxTokens,
    prompt: { prompt, passages, maxPassageCharacters, chat, today },
  };
}
