/** From a recipe to what a training needs: questions, retriever, tokenizer and engine. The same for evaluation and `ask`. */
import { join } from "node:path";
import type { Recipe } from "../config/recipe.ts";
import type { Passage } from "../corpus/passage.ts";
import { type Question, questionKey } from "../corpus/question.ts";
import { writeCorpus } from "../corpus/read-corpus.ts";
import { readQuestions, writeQuestions } from "../corpus/read-questions.ts";
import { makeWorld } from "../corpus/world.ts";
import type { EmbeddedEngine } from "../engine/embedded-engine.ts";
import { findCodec } from "../environment/codecs.ts";
import { findPassageTemplate } from "../environment/passage-template.ts";
import { findPrompt, prepareQuestion } from "../environment/prompt.ts";
import { ConfigError } from "../errors.ts";
import { hashQuestions } from "../evaluation/contract.ts";
import { saveIndex } from "../retrieval/index-folder.ts";
import type { PassageStore } from "../retrieval/passage-store.ts";
import { Closers } from "../shared/closers.ts";
import type { BytePairTokenizer } from "../tokenizer/byte-pair.ts";
import { trainBytePair } from "../tokenizer/byte-pair-training.ts";
import { engineOptions } from "./engine-options.ts";
import { corpusOf, type OpenedRetriever, openRetriever } from "./open-retriever.ts";
import { processWorld, type World } from "./world.ts";

/** What is asked and what is searched. */
export interface TrainingData extends OpenedRetriever {
  readonly train: readonly Question[];
  /** The first `evaluation.n` held-out questions. */
  readonly evaluation: readonly Question[];
  readonly split: string;
  /** Closes the retriever. */
  close(): Promise<void>;
}

/** Makes or reads the data of a recipe. Throws `DataFormatError`, `FileError`, or `ConfigError` when parts do not fit. */
export async function loadData(recipe: Recipe, world: World = processWorld()): Promise<TrainingData> {
  const asked = await loadQuestions(recipe);
  const opened = new Closers();
  try {
    const { passages, ...questions } = asked;
    const retriever = await openRetriever(recipe, { world, opened, ...(passages && { passages }) });
    return { ...retriever, ...questions, close: () => opened.close() };
  } catch (error) {
    await opened.close();
    throw error;
  }
}

type Asked = Pick<TrainingData, "train" | "evaluation" | "split"> & {
  /** Of a built-in world. */
  readonly passages?: readonly Passage[];
};

async function loadQuestions({ data, evaluation }: Recipe): Promise<Asked> {
  if (data.type === "world") {
    const { questions, passages } = await makeWorld(data.world);
    const split = evaluation.split ?? "test";
    return { train: questions.train, evaluation: questions[split].slice(0, evaluation.n), split, passages };
  }
  const train = await readAll(data.questions.train);
  const heldOut = (await readAll(data.questions.evaluation)).slice(0, evaluation.n);
  requireApart(train, heldOut);
  return { train, evaluation: heldOut, split: "evaluation" };
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
  if (data.passages !== undefined)
    await writeCorpus(join(folder, "data", "corpus.jsonl"), allPassages(data.passages));
  await writeQuestions(join(folder, "data", "train.jsonl"), data.train);
  await writeQuestions(join(folder, "data", `${data.split}.jsonl`), data.evaluation);
  if (data.index !== undefined) await saveIndex(data.index, join(folder, "index"));
}

function* allPassages(passages: PassageStore): Generator<Passage> {
  for (let position = 0; position < passages.count; position++) yield passages.get(position);
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
  const tokenizer = await trainTokenizer(recipe, data);
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

/** Passages and questions that the tokenizer of a fresh model learns from; more change little. */
const tokenizerPassages = 20_000;
const tokenizerQuestions = 5_000;

/** A byte-pair tokenizer trained on passages and questions as the model will see them. */
async function trainTokenizer(recipe: Recipe, data: TrainingData): Promise<BytePairTokenizer> {
  const { model, environment } = recipe;
  if (model.type !== "fresh")
    throw new ConfigError("only a fresh model trains a tokenizer", { path: "model.type" });
  const template = findPassageTemplate(environment.passageTemplate);
  const prompt = findPrompt(environment.prompt);
  const passages: string[] = [];
  for await (const passage of learntPassages(recipe, data)) {
    if (passages.length === tokenizerPassages) break;
    passages.push(template.render(passage, 1));
  }
  const questions = data.train
    .slice(0, tokenizerQuestions)
    .map(({ text }) => prompt.render(prepareQuestion(text)));
  return trainBytePair([...passages, ...questions], {
    vocabularySize: model.vocabularySize,
    specialTokens: findCodec(environment.codec).tags,
  });
}

/** Those of the retriever, else of the recipe's corpus. */
function learntPassages({ data: source, retriever }: Recipe, { passages }: TrainingData) {
  if (passages !== undefined) return allPassages(passages);
  if (source.type === "files" && source.corpus !== undefined)
    return corpusOf(source, { note: () => undefined });
  throw new ConfigError(
    `a fresh model learns its tokenizer from passages, which the retriever ${retriever.type} does not show; name data.corpus, or start from a checkpoint`,
    { path: "model.type" },
  );
}
