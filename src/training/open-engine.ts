/** From a recipe to its engine: a model that exists, or a fresh one with a tokenizer trained on the corpus. */
import { trainableModel } from "../config/model-source-options.ts";
import type { EmbeddedSection, Recipe } from "../config/recipe.ts";
import type { EmbeddedEngine } from "../engine/embedded-engine.ts";
import type { Engine } from "../engine/engine.ts";
import { findCodec } from "../environment/codecs.ts";
import { findPassageTemplate } from "../environment/passage-template.ts";
import { prepareQuestion, renderPrompt } from "../environment/prompt.ts";
import { rankingTags } from "../environment/ranking-codec.ts";
import { ConfigError } from "../errors.ts";
import type { BytePairTokenizer } from "../tokenizer/byte-pair.ts";
import { trainBytePair } from "../tokenizer/byte-pair-training.ts";
import { engineOptions } from "./engine-options.ts";
import { hubSettings, type Watcher } from "./hub-settings.ts";
import { corpusOf } from "./open-retriever.ts";
import { allPassages, type TrainingData } from "./setup.ts";

/** A recipe whose model is computed in this process. */
export type EmbeddedRecipe = Recipe & { readonly engine: EmbeddedSection };

type Setting = Watcher & { readonly folder?: string; readonly tags?: readonly string[] };

/**
 * The engine of a recipe, in this process or elsewhere. `folder` is where it may keep what does not fit into memory, and of an
 * engine elsewhere what must be cleared up after a crash. Throws what the two ways throw.
 */
export async function createEngine(
  recipe: Recipe,
  data: TrainingData,
  setting: Setting = {},
): Promise<Engine> {
  const { engine } = recipe;
  if (engine.type === "embedded") return await createEmbedded({ ...recipe, engine }, data, setting);
  const { openTinker } = await import("./open-tinker.ts");
  return await openTinker({ ...recipe, engine }, setting);
}

/**
 * The embedded engine with what it trains: all weights, or with `engine.lora` adapters. `folder` is where it may keep what
 * does not fit into memory; absent: a folder for temporary files. A fresh tokenizer knows `tags` beside those of the codec. Throws what `openEngine` throws.
 */
export async function createEmbedded(
  recipe: EmbeddedRecipe,
  data: TrainingData,
  setting: Setting = {},
): Promise<EmbeddedEngine> {
  const { seed, engine } = recipe;
  const model = trainableModel(recipe.model);
  const { EmbeddedEngine } = await embeddedEngine();
  if (model.type === "pretrained") {
    const options = { ...engineOptions(recipe, setting.folder), hub: hubSettings(process.env, setting) };
    if (engine.lora === undefined) return await EmbeddedEngine.open(model.source, options);
    return await EmbeddedEngine.adapt(model.source, { lora: engine.lora, seed }, options);
  }
  const { type: _, ...options } = model;
  const tokenizer = await trainTokenizer(recipe, data, setting.tags ?? rankingTagsOf(recipe));
  // A small corpus has fewer pieces than were asked for; an id without a piece must never be sampled.
  const shape = { ...options, vocabularySize: tokenizer.vocabularySize };
  return await EmbeddedEngine.create(shape, { tokenizer, seed }, engineOptions(recipe, setting.folder));
}

/**
 * The engine with the weights of a model, all of which it would train; `watcher` is told of downloads and stops them.
 * Throws `CheckpointError`, `FileError`, `DataFormatError` or `HubError`.
 */
export async function openEngine(
  source: string,
  recipe: Pick<Recipe, "engine" | "stages">,
  watcher?: Watcher,
): Promise<EmbeddedEngine> {
  const { EmbeddedEngine } = await embeddedEngine();
  const hub = hubSettings(process.env, watcher);
  return await EmbeddedEngine.open(source, { ...engineOptions(recipe), hub });
}

/** Whether an engine computes in this process, so that its model and memory are known. */
export function isEmbedded(engine: Engine): engine is EmbeddedEngine {
  return engine.describe === undefined;
}

/**
 * Most episodes of an evaluation that are under way at once: thousands keep an engine elsewhere busy, more of them only take memory;
 * undefined for one in this process, which plays all it is given in turns.
 */
export function episodesAtOnce(engine: Engine): number | undefined {
  return isEmbedded(engine) ? undefined : 2_000;
}

/** The tensor runtime is loaded with the first engine, so that commands without a model start at once. */
function embeddedEngine(): Promise<typeof import("../engine/embedded-engine.ts")> {
  return import("../engine/embedded-engine.ts");
}

/** The tags of rankings, where the agent's model writes them too. */
function rankingTagsOf({ ranker }: Recipe): readonly string[] {
  return ranker?.type === "generative" && ranker.weights === "shared" ? rankingTags : [];
}

/** Passages and questions that the tokenizer of a fresh model learns from; more change little. */
const tokenizerPassages = 20_000;
const tokenizerQuestions = 5_000;

/** A byte-pair tokenizer trained on passages and questions as the model will see them. */
async function trainTokenizer(
  recipe: Recipe,
  data: TrainingData,
  tags: readonly string[],
): Promise<BytePairTokenizer> {
  const { model, environment } = recipe;
  if (model.type !== "fresh")
    throw new ConfigError("only a fresh model trains a tokenizer", { path: "model.type" });
  const template = findPassageTemplate(environment.passageTemplate);
  const passages: string[] = [];
  for await (const passage of learntPassages(recipe, data)) {
    if (passages.length === tokenizerPassages) break;
    passages.push(template.render(passage, 1));
  }
  const questions = data.train
    .slice(0, tokenizerQuestions)
    .map(({ text }) => renderPrompt(environment, { question: prepareQuestion(text), information: "" }));
  return trainBytePair([...passages, ...questions], {
    vocabularySize: model.vocabularySize,
    specialTokens: [...new Set([...findCodec(environment.codec).tags, ...tags])],
  });
}

/** Those of the retriever, else of the recipe's corpus. */
function learntPassages({ data: source, retriever }: Recipe, { passages }: TrainingData) {
  if (passages !== undefined) return allPassages(passages);
  if (source.type === "files" && source.corpus !== undefined)
    return corpusOf(source, { note: () => undefined });
  throw new ConfigError(
    `a fresh model learns its tokenizer from passages, which the retriever ${retriever.type} does not show; name data.corpus, or start from a model that exists`,
    { path: "model.type" },
  );
}
