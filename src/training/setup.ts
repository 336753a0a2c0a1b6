/** From a recipe to what is asked and searched: questions and retriever. The same for training, evaluation and `ask`. */
import { join } from "node:path";
import type { Recipe } from "../config/recipe.ts";
import { findBenchmark } from "../corpus/benchmarks.ts";
import { openBenchmark } from "../corpus/open-benchmark.ts";
import type { Passage } from "../corpus/passage.ts";
import { type Question, questionKey } from "../corpus/question.ts";
import { writeCorpus } from "../corpus/read-corpus.ts";
import { readQuestions, writeQuestions } from "../corpus/read-questions.ts";
import { makeWorld } from "../corpus/world.ts";
import { prepareQuestion } from "../environment/prompt.ts";
import { ConfigError } from "../errors.ts";
import { requireScorable } from "../evaluation/scorable.ts";
import { saveIndex } from "../retrieval/index-folder.ts";
import type { PassageStore } from "../retrieval/passage-store.ts";
import { Closers } from "../shared/closers.ts";
import { exists } from "../shared/files.ts";
import { type OpenedRetriever, openRetriever } from "./open-retriever.ts";
import { untilOf } from "./stage-switch.ts";
import { processWorld, type World } from "./world.ts";

/** What is asked and what is searched. */
export interface TrainingData extends OpenedRetriever {
  readonly train: readonly Question[];
  /** At most `evaluation.n` held-out questions. */
  readonly evaluation: readonly Question[];
  readonly split: string;
  /** By which stages with `until` choose their weights; none where no stage has it. */
  readonly validation: readonly Question[];
  /** Closes the retriever. */
  close(): Promise<void>;
}

/** Makes or reads the data of a recipe. Throws `DataFormatError`, `FileError`, or `ConfigError` when parts do not fit. */
export async function loadData(recipe: Recipe, world: World = processWorld()): Promise<TrainingData> {
  const asked = await loadQuestions(recipe, world);
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

type Asked = Pick<TrainingData, "train" | "evaluation" | "validation" | "split"> & {
  /** Of a built-in world. */
  readonly passages?: readonly Passage[];
};

/** What is asked alone, without opening what is searched. Throws as `loadData` does. */
export async function loadQuestions({ data, evaluation, stages }: Recipe, world: World): Promise<Asked> {
  const isValidated = stages.some((stage) => untilOf(stage) !== undefined);
  if (data.type === "world") {
    const { questions, passages } = await makeWorld(data.world);
    const split = evaluation.split ?? "test";
    return {
      train: partOf(questions.train, data.trainPart),
      evaluation: questions[split].slice(0, evaluation.n),
      validation: isValidated ? questions.validation : [],
      split,
      passages,
    };
  }
  const places = { folder: data.folder, hub: world.hub };
  const readAll = async (paths: string | readonly string[]): Promise<Question[]> =>
    (await Promise.all(listOf(paths).map((path) => readOne(path, places)))).flat();
  // A recipe that is only evaluated has no use for what it could be trained on, which may not be here.
  const train = stages.length === 0 ? [] : partOf(await readAll(data.questions.train ?? []), data.trainPart);
  const heldOut = evenly(await readAll(data.questions.evaluation), evaluation.n);
  requireScorable(heldOut);
  requireApart(train, heldOut, "training");
  const validation = isValidated ? await readAll(data.questions.validation ?? []) : [];
  requireApart(train, validation, "training");
  requireApart(heldOut, validation, "evaluation");
  return { train, evaluation: heldOut, validation, split: splitName(data.questions.evaluation) };
}

/** The questions of a file, or of a benchmark by its name. */
async function readOne(path: string, places: Parameters<typeof openBenchmark>[1]): Promise<Question[]> {
  const benchmark = findBenchmark(path);
  return benchmark === undefined ? await readQuestions(path) : await openBenchmark(benchmark, places);
}

/** Names the split in contracts: of benchmarks each with its own, such as `nq:test+hotpotqa:dev`. */
function splitName(paths: string | readonly string[]): string {
  const named = listOf(paths).map(findBenchmark);
  return named.every((benchmark) => benchmark !== undefined)
    ? named.map((benchmark) => `${benchmark?.name}:${benchmark?.split}`).join("+")
    : "evaluation";
}

/** Every `of`-th question, from the one numbered `part` on; all of them where there are no parts. */
function partOf(questions: readonly Question[], parts: Recipe["data"]["trainPart"]): readonly Question[] {
  return parts === undefined
    ? questions
    : questions.filter((_, index) => index % parts.of === parts.part - 1);
}

/** At most `n` of the questions, evenly over all files. */
export function evenly(questions: readonly Question[], n: number): Question[] {
  if (questions.length <= n) return [...questions];
  return Array.from({ length: n }, (_, i) => questions[Math.floor((i * questions.length) / n)] as Question);
}

/** A question that was trained on, or by which weights were chosen, says nothing when it is asked again. */
function requireApart(used: readonly Question[], heldOut: readonly Question[], where: string): void {
  const texts = new Map(used.map((question) => [prepareQuestion(question.text).toLowerCase(), question]));
  for (const question of heldOut) {
    const twin = texts.get(prepareQuestion(question.text).toLowerCase());
    if (!twin) continue;
    throw new ConfigError(
      `the held-out question ${questionKey(question)} is also asked in ${where} (${questionKey(twin)}); remove it from one of the files`,
      { path: "data.questions" },
    );
  }
}

function listOf(paths: string | readonly string[]): readonly string[] {
  return typeof paths === "string" ? [paths] : paths;
}

/**
 * Writes a built-in world in the public formats, and its index, so that other commands and programs can use them. What is
 * there already stays: each appears whole, and a kill may have come between them.
 */
export async function writeWorldFiles(folder: string, data: TrainingData): Promise<void> {
  const { passages, train, split, evaluation, validation, index } = data;
  const unlessThere = async (path: string, write: (path: string) => Promise<void>): Promise<void> => {
    if (!(await exists(path))) await write(path);
  };
  const file = (name: string): string => join(folder, "data", `${name}.jsonl`);
  if (passages !== undefined)
    await unlessThere(file("corpus"), (path) => writeCorpus(path, allPassages(passages)));
  await unlessThere(file("train"), (path) => writeQuestions(path, train));
  await unlessThere(file(split), (path) => writeQuestions(path, evaluation));
  if (validation.length > 0)
    await unlessThere(file("validation"), (path) => writeQuestions(path, validation));
  if (index !== undefined) await unlessThere(join(folder, "index"), (path) => saveIndex(index, path));
}

/** Every passage, in the order of the corpus. */
export function* allPassages(passages: PassageStore): Generator<Passage> {
  for (let position = 0; position < passages.count; position++) yield passages.get(position);
}
