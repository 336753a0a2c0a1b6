/** `forager eval`: scores a trained model on held-out questions, under a contract that says what the score depends on. */
import { join, parse } from "node:path";
import { loadRecipe, resolvedYaml } from "../../config/load-recipe.ts";
import type { Question } from "../../corpus/question.ts";
import { readQuestions } from "../../corpus/read-questions.ts";
import { evaluate } from "../../evaluation/evaluate.ts";
import type { EvaluationResult } from "../../evaluation/result.ts";
import { writeJsonLines } from "../../reporting/json-lines.ts";
import { startProgress } from "../../reporting/progress.ts";
import { toStored } from "../../reporting/trajectory-record.ts";
import type { PassageStore } from "../../retrieval/passage-store.ts";
import type { Retriever } from "../../retrieval/retriever.ts";
import { openSearch } from "../../retrieval/search-folder.ts";
import type { Trajectory } from "../../rollout/trajectory.ts";
import { BudgetSpentError, budgetSpent } from "../../shared/budget.ts";
import { Closers } from "../../shared/closers.ts";
import { writeFileAtomic } from "../../shared/files.ts";
import type { Tokenizer } from "../../tokenizer/tokenizer.ts";
import { baselineFile, openAssessor } from "../../training/open-assessor.ts";
import { requirePromptsFit } from "../../training/prompt-fit.ts";
import { loadData } from "../../training/setup.ts";
import { evaluationRecords, rankingRecords, storeEvaluation } from "../../training/store-trajectories.ts";
import { processWorld, type World } from "../../training/world.ts";
import { type CommandIo, type CommandResult, defineCommand, type OptionValues } from "../command.ts";
import { changedRetrieval, decomposed, decompositionText, withPassagesOf } from "../eval-conditions.ts";
import { resultNote } from "../live-view.ts";
import { requireNewPath } from "../new-path.ts";
import { timeStamp } from "../new-run.ts";
import { findModel, type ModelSource, openPolicy, openRankerOf, type SourceOptions } from "../open-model.ts";
import { packageVersion } from "../package.ts";
import { plannerJson, plannerText } from "../planner-text.ts";
import { askedText, costText, resultJson, resultTable, searchUseText } from "../result-text.ts";
import { weightsOption, withWeights } from "../weights-option.ts";

const options = {
  recipe: {
    type: "text",
    value: "RECIPE",
    doc: "Rules and data; needed for a model, a run has its own.",
  },
  questions: { type: "list", value: "FILE", doc: "Ask these questions instead of the recipe's; repeatable." },
  index: { type: "text", value: "INDEX", doc: "Search this index instead of the recipe's corpus." },
  weights: weightsOption,
  set: {
    type: "list",
    value: "KEY=VALUE",
    doc: "Override of the recipe, such as evaluation.n=50; repeatable.",
  },
  out: {
    type: "text",
    value: "FILE",
    doc: "New file for the result, trajectories beside it; default: RUN/evaluation/eval-DATE-TIME.json.",
  },
  decompose: {
    type: "flag",
    doc: "Ask with searches that find nothing, as they are, and gold passages first.",
  },
  "k-from": {
    type: "text",
    value: "RESULT",
    doc: "Mode rag: as many passages as the agent of this result saw on average, with room for them.",
  },
  "dry-run": { type: "flag", doc: "Print the recipe with every default filled in, and stop." },
} as const;

export const evalCommand = defineCommand({
  name: "eval",
  summary: "Score a run or a model on held-out questions.",
  details:
    "Greedy unless the recipe says otherwise. The result names everything it depends on; see forager compare. All\n" +
    "trajectories are kept: RUN/trajectories/eval-DATE-TIME.jsonl, or FILE with the ending .trajectories.jsonl.\n" +
    "--set environment.mode=direct and =rag score the same model as baselines without searches.\n" +
    "--set generator.model=MODEL lets another frozen model answer for a trained planner.",
  args: [
    {
      name: "TARGET",
      doc: "a run (its newest checkpoint), a recipe (the model it starts from), or a model with --recipe",
    },
  ],
  options,
  examples: [
    "eval runs/quickstart",
    "eval runs/quickstart --set environment.k=1 --json",
    "eval my-recipe.yaml --set environment.mode=rag --out rag.json",
    "eval models/base --recipe my-recipe.yaml --questions nq.jsonl --index wiki-index --out nq.json",
  ],
  async run({ args, options }, io) {
    const target = args[0] as string;
    const overrides = withWeights(options.set, options.weights);
    if (options["dry-run"]) return await printRecipe(target, { recipePath: options.recipe, overrides }, io);
    const found = await findModel(target, { recipePath: options.recipe, overrides });
    const source =
      options["k-from"] === undefined ? found : await withPassagesOf(found, options["k-from"], io);
    const file = await resultFile(source, options.out, io);
    const finished: Trajectory[] = [];
    const scored = await score(source, options, { io, finished }).catch((error: unknown) =>
      keepFinished(error, { finished, file, name: target }),
    );
    const { result } = scored;
    if (file !== undefined) await write(file, source, scored);
    io.print(`${target}: ${resultNote(result)}\n`);
    io.print(resultTable(result));
    io.print(`\n${askedText(result)}`);
    const planned = plannerText(result);
    if (planned !== "") io.print(planned);
    const use = searchUseText(result);
    if (use !== "") io.print(use);
    if (typeof source.model !== "string" && result.cost !== undefined)
      io.print(`\ncost: ${costText(result.cost)}`);
    if (file !== undefined) io.print(`\nwritten to ${file.path}`);
    const json = { ...resultJson(result), ...plannerJson(result), file: file?.path ?? null };
    if (!options.decompose) return { json };
    const under = async (condition: "none" | "oracle"): Promise<EvaluationResult> => {
      io.note(`once more with ${condition === "none" ? "no" : "oracle"} retrieval`);
      return (await score(source, options, { io, finished: [], condition })).result;
    };
    const parts = await decomposed(
      { none: await under("none"), real: result, oracle: await under("oracle") },
      file?.path,
    );
    io.print(`\n${decompositionText(parts)}`);
    return { json: { ...json, decomposition: parts } };
  },
});

/** What would be evaluated; a recipe is only read, and may name a model that is not here. */
async function printRecipe(
  target: string,
  { recipePath, overrides }: SourceOptions,
  io: CommandIo,
): Promise<CommandResult> {
  const recipe =
    recipePath === undefined && /\.ya?ml$/.test(target)
      ? await loadRecipe(target, { overrides })
      : (await findModel(target, { recipePath, overrides })).recipe;
  io.print(resolvedYaml(recipe).trimEnd());
  return { json: { recipe } };
}

type EvalOptions = OptionValues<typeof options>;

interface ResultFile {
  readonly path: string;
  /** Name within the run's `evaluation/`, where it goes there. */
  readonly name?: string;
}

/** Where the result goes, checked before hours of work. */
async function resultFile(
  { run }: ModelSource,
  out: string | undefined,
  io: CommandIo,
): Promise<ResultFile | undefined> {
  if (out === undefined && run === undefined) return undefined;
  const name = `eval-${timeStamp(io.now())}`;
  const path = out ?? join((run as NonNullable<typeof run>).path, "evaluation", `${name}.json`);
  await requireNewPath(path, "choose another file with --out");
  if (out === undefined) return { path, name };
  await requireNewPath(trajectoriesBeside(path), "choose another file with --out");
  return { path };
}

function trajectoriesBeside(path: string): string {
  return `${path.replace(/\.json$/, "")}.trajectories.jsonl`;
}

/** The trajectories first: a result that is there has all of its own. */
async function write(
  { path, name }: ResultFile,
  { run, position: at = { stage: "", step: 0 } }: ModelSource,
  scored: Scored,
): Promise<void> {
  if (name !== undefined && run !== undefined) return await storeEvaluation(run, { ...scored, name, at });
  const records = [...evaluationRecords({ ...scored, at }), ...rankingRecords({ ...scored, at })].map(
    toStored,
  );
  await writeJsonLines(trajectoriesBeside(path), records);
  await writeFileAtomic(path, `${JSON.stringify(scored.result, null, 2)}\n`);
}

interface Scored {
  readonly result: EvaluationResult;
  readonly trajectories: readonly Trajectory[];
  readonly tokenizer: Tokenizer | undefined;
}

interface Unfinished {
  /** The trajectories that ended before the error. */
  readonly finished: readonly Trajectory[];
  readonly file: ResultFile | undefined;
  readonly name: string;
}

/** Writes the trajectories that a spent budget left behind, and says where; other errors are thrown as they are. */
async function keepFinished(error: unknown, { finished, file, name }: Unfinished): Promise<never> {
  const spent = budgetSpent(error);
  if (spent === undefined) throw error;
  const done = `${spent.message}; ${finished.length} questions of ${name} were finished`;
  if (file === undefined)
    throw new BudgetSpentError(
      spent.code,
      `${done}; name a file with --out to keep their trajectories`,
      spent.spent,
    );
  const path = trajectoriesBeside(file.path.replace(/\.json$/, ".unfinished"));
  const records = finished.map((trajectory) => toStored({ stage: "", step: 0, trajectory }));
  await writeJsonLines(path, records);
  throw new BudgetSpentError(spent.code, `${done}, their trajectories are in ${path}`, spent.spent);
}

async function score(
  source: ModelSource,
  { questions: files, index }: EvalOptions,
  {
    io,
    finished,
    condition,
  }: { readonly io: CommandIo; readonly finished: Trajectory[]; readonly condition?: "none" | "oracle" },
): Promise<Scored> {
  const { recipe } = source;
  const opened = new Closers();
  try {
    const world = processWorld(io);
    const asked = await questionsAndRetriever(source, { files, index, world }, opened);
    const { questions, retriever, split } = asked;
    const agent = await openPolicy(source, io, opened);
    const { policy, tokenizer, contextLength, concurrency } = agent;
    const planner = await openAssessor(recipe, { retriever }, { watcher: io, closers: opened });
    if (source.run) await planner?.keepIn(baselineFile(source.run.path), { isReadOnly: true });
    const ranker = await openRankerOf(source, { watcher: io, closers: opened, agent });
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

interface Asked {
  /** What is searched, where it is at hand. */
  readonly passages?: PassageStore | undefined;
  readonly questions: readonly Question[];
  readonly retriever: Retriever;
  /** Named in the contract. */
  readonly split: string;
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
  return {
    questions: files.length === 0 ? (own?.evaluation ?? []) : asked,
    retriever: (other ?? own)?.retriever as Retriever,
    passages: other === undefined ? own?.passages : undefined,
    split: files.length === 0 ? (own?.split ?? "") : files.map((file) => parse(file).name).join("+"),
  };
}
