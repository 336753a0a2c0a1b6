/**
 * Scores what `forager eval` was asked to: the model of a source on its questions, or on others, with its retriever or an index.
 * Also tells what an evaluation would be of now, for results that are stored.
 */
import { parse } from "node:path";
import type { Question } from "../corpus/question.ts";
import { readQuestions } from "../corpus/read-questions.ts";
import { hashQuestions } from "../evaluation/contract.ts";
import { evaluate, type KeptEpisodes } from "../evaluation/evaluate.ts";
import { requireScorable } from "../evaluation/scorable.ts";
import { startProgress } from "../reporting/progress.ts";
import type { Bm25Index } from "../retrieval/lexical/bm25.ts";
import type { PassageStore } from "../retrieval/passage-store.ts";
import type { Retriever } from "../retrieval/retriever.ts";
import { openSearch } from "../retrieval/search-folder.ts";
import type { Trajectory } from "../rollout/trajectory.ts";
import { Closers } from "../shared/closers.ts";
import { baselineFile, openAssessor } from "../training/open-assessor.ts";
import { requirePromptsFit } from "../training/prompt-fit.ts";
import { loadData, loadQuestions } from "../training/setup.ts";
import { processWorld, type World } from "../training/world.ts";
import type { CommandIo } from "./command.ts";
import { changedRetrieval } from "./eval-conditions.ts";
import type { Scored } from "./eval-files.ts";
import { type ModelSource, openPolicy, openRankerOf } from "./open-model.ts";
import { packageVersion } from "./package.ts";

/** What is asked instead of the recipe's questions and searched instead of its retriever. */
export interface ScoreOptions {
  readonly questions: readonly string[];
  readonly index?: string | undefined;
}

/** Evaluates the source's model; `finished` gets every trajectory that ended, also when the evaluation then fails. */
export async function score(
  source: ModelSource,
  { questions: files, index }: ScoreOptions,
  {
    io,
    finished,
    condition,
    kept,
  }: {
    readonly io: CommandIo;
    readonly finished: Trajectory[];
    readonly condition?: "none" | "oracle";
    /** Episodes that need not be played again. */
    readonly kept?: KeptEpisodes | undefined;
  },
): Promise<Scored> {
  const { recipe } = source;
  const opened = new Closers();
  try {
    const world = processWorld(io);
    const asked = await questionsAndRetriever(source, { files, index, world }, opened);
    const { questions, retriever, split, remark } = asked;
    if (remark !== undefined && condition === undefined) io.note(remark);
    const agent = await openPolicy(source, io, opened);
    const { policy, tokenizer, contextLength, concurrency } = agent;
    const planner = await openAssessor(
      recipe,
      { retriever },
      { watcher: io, closers: opened, records: true },
    );
    if (source.run) await planner?.keepIn(baselineFile(source.run.path), { isReadOnly: true });
    const ranker = await openRankerOf(source, { watcher: io, closers: opened, agent, records: true });
    const total = questions.length;
    const progress = startProgress({ label: "evaluating", total, unit: "questions" }, io.progress);
    if (tokenizer !== undefined && contextLength !== undefined)
      await requirePromptsFit(questions, recipe.environment, { tokenizer, contextLength });
    const { result, trajectories } = await evaluate({
      policy,
      retriever,
      ...(condition && changedRetrieval(condition, asked)),
      questions,
      split,
      kept,
      environment: recipe.environment,
      planner,
      ranker: ranker?.sampling(recipe.evaluation.sampling),
      sampling: recipe.evaluation.sampling,
      seed: recipe.seed,
      tokenizer,
      contextLength,
      concurrency,
      codeVersion: packageVersion(),
      now: io.progress.now,
      signal: io.signal,
      onTrajectory: (trajectory) => {
        if (trajectory.stopReason !== "aborted") finished.push(trajectory);
      },
      onProgress: ({ done }) => progress.update(done),
    });
    progress.finish();
    return { result, trajectories, tokenizer };
  } finally {
    await opened.close();
  }
}

/** SHA-256 of what a result is of besides its models, named as in contracts. */
export interface DataHashes {
  readonly questionsHash: string;
  /** Of what is searched; absent where that is behind a server, which is not asked. */
  readonly searched?: { readonly corpusHash: string; readonly indexHash: string };
}

const elsewhere = ["remote", "web", "simulated"];

/** The hashes that a result of the recipe would have now. Throws what `loadData` throws. */
export async function dataHashes({ recipe }: ModelSource, io: CommandIo): Promise<DataHashes> {
  const { recordRetrieval: _, ...read } = recipe;
  const world = processWorld(io);
  if (elsewhere.includes(recipe.retriever.type))
    return { questionsHash: hashQuestions((await loadQuestions(recipe, world)).evaluation) };
  const data = await loadData(read, world);
  try {
    const { corpusHash, indexHash } = data.retriever.identity;
    return { questionsHash: hashQuestions(data.evaluation), searched: { corpusHash, indexHash } };
  } finally {
    await data.close();
  }
}

interface Asked {
  /** What is searched, where it is at hand. */
  readonly passages?: PassageStore | undefined;
  readonly questions: readonly Question[];
  readonly retriever: Retriever;
  /** Named in the contract. */
  readonly split: string;
  /** What people should know before they read the scores. */
  readonly remark: string | undefined;
}

interface QuestionSource {
  /** Instead of the recipe's questions. */
  readonly files: readonly string[];
  /** Instead of the recipe's retriever. */
  readonly index: string | undefined;
  readonly world: World;
}

async function questionsAndRetriever(
  { recipe }: ModelSource,
  { files, index, world }: QuestionSource,
  opened: Closers,
): Promise<Asked> {
  const own = files.length === 0 || index === undefined ? await loadData(recipe, world) : undefined;
  if (own) opened.defer(() => own.close());
  const other = index === undefined ? undefined : await openSearch(index, {}, world);
  if (other) opened.defer(() => other.close());
  const asked: Question[] = [];
  for (const file of files) asked.push(...(await readQuestions(file)));
  requireScorable(asked);
  const questions = files.length === 0 ? (own?.evaluation ?? []) : asked;
  return {
    questions,
    retriever: (other ?? own)?.retriever as Retriever,
    passages: other === undefined ? own?.passages : undefined,
    split: files.length === 0 ? (own?.split ?? "") : files.map((file) => parse(file).name).join("+"),
    remark: other && missingGold(questions, other.index, index as string),
  };
}

/** Where another index lacks gold passages, what is said of finding them is not about searching. */
function missingGold(questions: readonly Question[], index: Bm25Index, name: string): string | undefined {
  const marked = questions.filter(({ goldPassages }) => goldPassages.length > 0);
  const gold = new Set(marked.flatMap(({ goldPassages }) => goldPassages));
  const missing = new Set([...gold].filter((id) => index.passageById(id) === undefined));
  if (missing.size === 0) return undefined;
  const short = marked.filter(({ goldPassages }) => goldPassages.some((id) => missing.has(id)));
  return `${name} lacks ${missing.size} of the ${gold.size} gold passages, of ${short.length} of the ${marked.length} questions that name any: they count as not found, whatever was searched for; index the corpus of the questions, or leave "gold found" aside`;
}
