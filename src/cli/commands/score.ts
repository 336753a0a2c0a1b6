import type { Question } from "../../corpus/question.ts";
import { readQuestions } from "../../corpus/read-questions.ts";
import { UsageError } from "../../errors.ts";
import { answerCutoff, answerRecall, qrelsOfQuestions } from "../../evaluation/ranking/answer-recall.ts";
import { compareScores } from "../../evaluation/ranking/compare-runs.ts";
import { readQrels } from "../../evaluation/ranking/qrels.ts";
import type { Qrels } from "../../evaluation/ranking/ranking.ts";
import { defaultMetrics, parseMetric } from "../../evaluation/ranking/ranking-metrics.ts";
import { readRun } from "../../evaluation/ranking/run-file.ts";
import { type Averaging, type RunScore, scoreRun } from "../../evaluation/ranking/score-run.ts";
import { openIndex } from "../../retrieval/index-folder.ts";
import type { Bm25Index } from "../../retrieval/lexical/bm25.ts";
import { type CommandResult, defineCommand } from "../command.ts";
import { comparisonTable, queryTable, type ScoredRun, scoreNotes, scoreTable } from "../score-text.ts";

export const scoreCommand = defineCommand({
  name: "score",
  summary: "Score a run of a retriever, or compare two.",
  details:
    "RUN is a TREC run or JSON, such as forager search --run writes. --qrels takes TREC, BEIR or JSON. Metrics are\n" +
    "those of trec_eval: precision@K, recall@K, success@K, ndcg[@K], map[@K], mrr[@K]; besides judged@K, and answer@K:\n" +
    "a gold answer stands in one of the first K passages (needs --questions and --index).",
  args: [{ name: "RUN", doc: "a run" }],
  options: {
    qrels: {
      type: "text",
      value: "FILE",
      doc: "Which passages are relevant; default: the gold passages of --questions.",
    },
    questions: {
      type: "text",
      value: "FILE",
      doc: "Questions with gold answers; their ids are the run's query ids.",
    },
    index: { type: "text", value: "FOLDER", doc: "The index of the run, for the text of its passages." },
    against: {
      type: "text",
      value: "RUN2",
      doc: "Say whether RUN is better than this run, paired by query.",
    },
    metrics: {
      type: "text",
      value: "LIST",
      doc: `With commas; default: ${defaultMetrics.join(",")}, and answer@5,answer@20 with --index.`,
    },
    "relevant-from": {
      type: "integer",
      value: "N",
      least: 1,
      doc: "Least grade that is relevant; default 1.",
    },
    "only-retrieved": {
      type: "flag",
      doc: "Average over queries with results, as trec_eval does without -c; default: all, without results 0.",
    },
    "per-query": { type: "flag", doc: "Show every query too." },
  },
  examples: [
    "score bm25.trec --qrels qrels/test.tsv",
    "score hybrid.trec --qrels qrels.txt --against bm25.trec --metrics ndcg@10,recall@100",
    "score bm25.trec --questions questions.jsonl --index index --json",
  ],
  async run({ args, options }, io) {
    const task = await readTask(options);
    const run = await scoreFile(args[0] as string, task);
    const other = options.against === undefined ? undefined : await scoreFile(options.against, task);
    for (const { path, note } of [run, ...(other === undefined ? [] : [other])].flatMap((each) =>
      scoreNotes(each, task.averaging),
    ))
      io.note(`${path}: ${note}`);
    if (options["per-query"]) io.print(queryTable(run));
    if (other === undefined) {
      io.print(scoreTable(run));
      return { json: runJson(run, task, options["per-query"]) };
    }
    const differences = compareScores(other.scores, run.scores, { seed });
    if (differences.length === 0)
      throw new UsageError(
        `${run.path} and ${other.path} have no scored query in common; score runs of the same queries`,
      );
    io.print(comparisonTable(differences, { before: other.path, after: run.path }));
    return {
      json: {
        ...runJson(run, task, options["per-query"]),
        against: runJson(other, task, false),
        differences,
      },
    };
  },
});

const seed = 1;

/** Everything but the run. */
interface Task {
  readonly metrics: readonly string[];
  readonly answerMetrics: readonly string[];
  readonly averaging: Averaging;
  readonly relevantFrom: number;
  readonly qrels: Qrels | undefined;
  readonly questions: readonly Question[];
  readonly passages: PassagesById | undefined;
}

interface TaskOptions {
  readonly qrels?: string | undefined;
  readonly questions?: string | undefined;
  readonly index?: string | undefined;
  readonly metrics?: string | undefined;
  readonly "relevant-from"?: number | undefined;
  readonly "only-retrieved": boolean;
}

async function readTask(options: TaskOptions): Promise<Task> {
  const hasAnswers = options.questions !== undefined && options.index !== undefined;
  if (options.index !== undefined && options.questions === undefined)
    throw new UsageError("score: --index is for answer recall; give the --questions too");
  if (options.qrels === undefined && options.questions === undefined)
    throw new UsageError(
      "score: --qrels FILE is missing (or --questions FILE, whose gold passages then count)",
    );
  const questions = options.questions === undefined ? [] : await readQuestions(options.questions);
  const qrels = options.qrels === undefined ? qrelsOfQuestions(questions) : await readQrels(options.qrels);
  const asked = metricNames(options.metrics, qrels.size > 0, hasAnswers);
  const task = {
    metrics: asked.filter((name) => answerCutoff(name) === undefined).map((name) => parseMetric(name).name),
    answerMetrics: asked.filter((name) => answerCutoff(name) !== undefined).map((name) => name.toLowerCase()),
    averaging: options["only-retrieved"] ? ("retrieved" as const) : ("judged" as const),
    relevantFrom: options["relevant-from"] ?? 1,
    qrels: qrels.size > 0 ? qrels : undefined,
    questions,
  };
  if (task.metrics.length > 0 && task.qrels === undefined)
    throw new UsageError(
      `score: ${options.questions} marks no gold passages; give --qrels, or --metrics answer@5`,
    );
  if (task.answerMetrics.length > 0 && !hasAnswers)
    throw new UsageError("score: answer@K needs --questions FILE and --index FOLDER");
  const passages = task.answerMetrics.length === 0 ? undefined : await openPassages(options.index as string);
  return { ...task, passages };
}

function metricNames(list: string | undefined, hasQrels: boolean, hasAnswers: boolean): readonly string[] {
  if (list === undefined)
    return [...(hasQrels ? defaultMetrics : []), ...(hasAnswers ? ["answer@5", "answer@20"] : [])];
  return [...new Set(list.split(",").map((name) => name.trim()))];
}

type PassagesById = Pick<Bm25Index, "passageById">;

async function openPassages(folder: string): Promise<PassagesById> {
  return await openIndex(folder);
}

async function scoreFile(path: string, task: Task): Promise<ScoredRun> {
  const run = await readRun(path);
  const { averaging, relevantFrom, qrels, questions, passages } = task;
  const scores: RunScore[] = [];
  let judged: number | undefined;
  if (qrels !== undefined && task.metrics.length > 0) {
    scores.push(scoreRun(run, qrels, { metrics: task.metrics, seed, averaging, relevantFrom }));
    judged = scoreRun(run, qrels, { metrics: ["judged@10"], seed, averaging: "retrieved" }).means["judged@10"]
      ?.mean;
  }
  if (passages !== undefined) {
    const options = {
      metrics: task.answerMetrics,
      seed,
      averaging,
      passageOf: (id: string) => passages.passageById(id),
    };
    scores.push(answerRecall(run, questions, options));
  }
  const isEmpty = [...run.values()].every((entries) => entries.length === 0);
  return { path, isEmpty, scores, judged };
}

function runJson(
  { path, scores, judged }: ScoredRun,
  task: Task,
  withQueries: boolean,
): CommandResult["json"] {
  const counts = scores.map(({ queries, withoutResults, withoutJudgement, withoutRelevant }) => ({
    n: queries.length,
    withoutResults,
    withoutJudgement,
    withoutRelevant,
  }));
  const byQuery = new Map<string, Record<string, number>>();
  for (const { queries } of scores)
    for (const { id, values } of queries) byQuery.set(id, { ...byQuery.get(id), ...values });
  return {
    run: path,
    averaging: task.averaging,
    relevantFrom: task.relevantFrom,
    ...counts[0],
    judgedAt10: judged ?? null,
    metrics: Object.assign({}, ...scores.map(({ means }) => means)),
    ...(withQueries && { queries: Array.from(byQuery, ([id, values]) => ({ id, values })) }),
  };
}
