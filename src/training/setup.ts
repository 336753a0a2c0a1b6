/** From a recipe to what a training needs: questions, retriever, tokenizer and engine. The same for evaluation and `ask`. */
import { availableParallelism } from "node:os";
import { join } from "node:path";
import type { Recipe } from "../config/recipe.ts";
import { corpusHasher } from "../corpus/corpus-hash.ts";
import type { Passage } from "../corpus/passage.ts";
import { type Question, questionKey } from "../corpus/question.ts";
import { readCorpora } from "../corpus/read-corpora.ts";
import { writeCorpus } from "../corpus/read-corpus.ts";
import { readQuestions, writeQuestions } from "../corpus/read-questions.ts";
import { makeWorld } from "../corpus/world.ts";
import type { EmbeddedEngine, EmbeddedEngineOptions } from "../engine/embedded-engine.ts";
import { findCodec } from "../environment/codecs.ts";
import { findPassageTemplate } from "../environment/passage-template.ts";
import { findPrompt, prepareQuestion } from "../environment/prompt.ts";
import { ConfigError } from "../errors.ts";
import { hashQuestions } from "../evaluation/contract.ts";
import { type Bm25Index, buildBm25Index, openIndex, saveIndex } from "../retrieval/lexical/bm25.ts";
import { canonicalJson } from "../shared/hash.ts";
import type { BytePairTokenizer } from "../tokenizer/byte-pair.ts";
import { trainBytePair } from "../tokenizer/byte-pair-training.ts";

/** What is asked and what is searched. */
export interface TrainingData {
  readonly retriever: Bm25Index;
  readonly train: readonly Question[];
  /** The first `evaluation.n` held-out questions. */
  readonly evaluation: readonly Question[];
  readonly split: string;
}

/** Makes or reads the data of a recipe. Throws `DataFormatError`, `FileError`, or `ConfigError` when parts do not fit. */
export async function loadData(recipe: Recipe): Promise<TrainingData> {
  const { data, retriever: options, evaluation } = recipe;
  if (data.type === "world") {
    const world = await makeWorld(data.world);
    const split = evaluation.split ?? "test";
    const retriever = await buildBm25Index(world.passages, options);
    return {
      retriever,
      train: world.questions.train,
      evaluation: world.questions[split].slice(0, evaluation.n),
      split,
    };
  }
  const train = await readAll(data.questions.train);
  const heldOut = (await readAll(data.questions.evaluation)).slice(0, evaluation.n);
  requireApart(train, heldOut);
  const retriever = await loadIndex(recipe);
  return { retriever, train, evaluation: heldOut, split: "evaluation" };
}

async function loadIndex({ data, retriever: options }: Recipe): Promise<Bm25Index> {
  if (data.type !== "files")
    throw new ConfigError("only data of files has an index of its own", { path: "data" });
  const passages = readCorpora(listOf(data.corpus));
  if (data.index === undefined) return await buildBm25Index(passages, options);
  const hasher = corpusHasher();
  for await (const passage of passages) hasher.add(passage);
  const index = await openIndex(data.index, { corpusHash: hasher.digest() });
  if (canonicalJson(index.parts.options) !== canonicalJson(options))
    throw new ConfigError(
      `${data.index} was built with other options (${canonicalJson(index.parts.options)}) than the recipe's retriever (${canonicalJson(options)}); build it again with them, or write its options into the recipe`,
      { path: "retriever" },
    );
  return index;
}

async function readAll(paths: string | readonly string[]): Promise<Question[]> {
  const files = await Promise.all(listOf(paths).map((path) => readQuestions(path)));
  return files.flat();
}

/** A question that is trained on says nothing when it is asked again. */
function requireApart(train: readonly Question[], heldOut: readonly Question[]): void {
  const texts = new Map(train.map((question) => [prepareQuestion(question.text).toLowerCase(), question]));
  for (const question of heldOut) {
    const twin = texts.get(prepareQuestion(question.text).toLowerCase());
    if (!twin) continue;
    throw new ConfigError(
      `the held-out question ${questionKey(question)} is also asked in training (${questionKey(twin)}); remove it from one of the files`,
      { path: "data.questions" },
    );
  }
}

function listOf(paths: string | readonly string[]): readonly string[] {
  return typeof paths === "string" ? [paths] : paths;
}

/** Writes a built-in world in the public formats, and its index, so that other commands and programs can use them. */
export async function writeWorldFiles(folder: string, data: TrainingData): Promise<void> {
  await writeCorpus(join(folder, "data", "corpus.jsonl"), allPassages(data.retriever));
  await writeQuestions(join(folder, "data", "train.jsonl"), data.train);
  await writeQuestions(join(folder, "data", `${data.split}.jsonl`), data.evaluation);
  await saveIndex(data.retriever, join(folder, "index"));
}

function* allPassages(index: Bm25Index): Generator<Passage> {
  for (let position = 0; position < index.parts.passages.count; position++)
    yield index.parts.passages.get(position);
}

/** What all scores of a training depend on; `contract.json` of its run folder. The contract of an evaluation says the same and more. */
export function trainingContract(recipe: Recipe, data: TrainingData, codeVersion: string): unknown {
  return {
    retriever: data.retriever.identity,
    trainQuestions: { n: data.train.length, hash: hashQuestions(data.train) },
    evaluationQuestions: {
      n: data.evaluation.length,
      hash: hashQuestions(data.evaluation),
      split: data.split,
    },
    promptHash: findPrompt(recipe.environment.prompt).hash,
    templateHash: findPassageTemplate(recipe.environment.passageTemplate).hash,
    codec: recipe.environment.codec,
    seed: recipe.seed,
    codeVersion,
    node: process.version,
  };
}

/** The engine of a recipe with the weights it starts from. */
export async function createEngine(recipe: Recipe, data: TrainingData): Promise<EmbeddedEngine> {
  const { model } = recipe;
  if (model.type === "checkpoint") return await openEngine(model.path, recipe);
  const { type: _, ...options } = model;
  const tokenizer = trainTokenizer(recipe, data);
  // A small corpus has fewer pieces than were asked for; an id without a piece must never be sampled.
  const shape = { ...options, vocabularySize: tokenizer.vocabularySize };
  const { EmbeddedEngine } = await embeddedEngine();
  return await EmbeddedEngine.create(shape, { tokenizer, seed: recipe.seed }, engineOptions(recipe));
}

/** The engine with the weights of a model folder. Throws `CheckpointError`. */
export async function openEngine(path: string, recipe: Recipe): Promise<EmbeddedEngine> {
  const { EmbeddedEngine } = await embeddedEngine();
  return await EmbeddedEngine.open(path, engineOptions(recipe));
}

/** The tensor runtime is loaded with the first engine, so that commands without a model start at once. */
function embeddedEngine(): Promise<typeof import("../engine/embedded-engine.ts")> {
  return import("../engine/embedded-engine.ts");
}

export function engineOptions({ engine, stages }: Pick<Recipe, "engine" | "stages">): EmbeddedEngineOptions {
  const episodes = stages.map((stage) =>
    stage.type === "reinforcement" ? stage.questionsPerStep * stage.algorithm.groupSize : 0,
  );
  return {
    threads: engine.threads ?? availableParallelism(),
    tokenBudget: engine.tokenBudget,
    maxSlots: Math.min(128, Math.max(32, ...episodes)),
  };
}

/** Passages and questions that the tokenizer of a fresh model learns from; more change little. */
const tokenizerPassages = 20_000;
const tokenizerQuestions = 5_000;

/** A byte-pair tokenizer trained on passages and questions as the model will see them. */
function trainTokenizer({ model, environment }: Recipe, data: TrainingData): BytePairTokenizer {
  if (model.type !== "fresh")
    throw new ConfigError("only a fresh model trains a tokenizer", { path: "model.type" });
  const template = findPassageTemplate(environment.passageTemplate);
  const prompt = findPrompt(environment.prompt);
  const count = Math.min(data.retriever.parts.passages.count, tokenizerPassages);
  const passages = Array.from({ length: count }, (_, position) =>
    template.render(data.retriever.parts.passages.get(position), 1),
  );
  const questions = data.train
    .slice(0, tokenizerQuestions)
    .map(({ text }) => prompt.render(prepareQuestion(text)));
  return trainBytePair([...passages, ...questions], {
    vocabularySize: model.vocabularySize,
    specialTokens: findCodec(environment.codec).tags,
  });
}
