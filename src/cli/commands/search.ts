/** `forager search`: the best passages of an index for one query, or a run for a file of queries. */

import type { Passage } from "../../corpus/passage.ts";
import { type QueryText, readQueries } from "../../corpus/read-queries.ts";
import { UsageError } from "../../errors.ts";
import { retrieveRun } from "../../evaluation/ranking/retrieve-run.ts";
import { createRun } from "../../evaluation/ranking/run-file.ts";
import { startProgress } from "../../reporting/progress.ts";
import { visibleText } from "../../reporting/transcript.ts";
import { denseFolder } from "../../retrieval/encoder-reference.ts";
import { explainRetrieval, type Stage } from "../../retrieval/explain-retrieval.ts";
import { recordRetriever } from "../../retrieval/recording/record-retriever.ts";
import type { Retriever, ScoredPassage } from "../../retrieval/retriever.ts";
import { Closers } from "../../shared/closers.ts";
import { exists } from "../../shared/files.ts";
import { commandLine } from "../../shared/shell-word.ts";
import { type CommandIo, type CommandResult, defineCommand } from "../command.ts";
import { requireNewPath } from "../new-path.ts";
import { openPlace } from "../open-place.ts";
import { searchFlags } from "../search-flags.ts";

export const searchCommand = defineCommand({
  name: "search",
  summary: "Search an index.",
  details:
    "With --queries and --run a whole file of queries is answered, into a TREC run that forager score and trec_eval\n" +
    'read. A query is a line of JSON: its id is "id" or "_id", its text "text", "query" or "question".',
  args: [
    { name: "INDEX", doc: "a folder made by forager index, or s3://BUCKET/PREFIX" },
    { name: "QUERY", doc: "what to look for, in quotes", isOptional: true },
  ],
  options: {
    k: {
      type: "integer",
      short: "k",
      value: "N",
      least: 1,
      doc: "How many passages; default 3, with --queries 20.",
    },
    queries: { type: "text", value: "FILE", doc: "Answer every query of this JSON Lines file." },
    run: {
      type: "text",
      value: "FILE",
      doc: "New file for their results: a TREC run, or JSON if it ends in .json.",
    },
    explain: { type: "flag", doc: "Show what each stage found, how long it took and what it moved." },
    record: { type: "text", value: "FILE", doc: "Append queries and answers to this file, for replay." },
    ...searchFlags,
  },
  examples: [
    'search index "capital of France"',
    'search index "capital of France" -k 10 --json',
    "search index --queries questions.jsonl -k 20 --run bm25.trec",
    'search index "capital of France" --mode hybrid --explain',
  ],
  async run({ args, options }, io) {
    const [folder, query] = args as [string, string | undefined];
    const { k, queries, run, explain, record } = options;
    const isOne = query !== undefined && queries === undefined && run === undefined;
    if (!isOne && (query !== undefined || queries === undefined || run === undefined))
      throw new UsageError(
        "search: give either a query, or --queries FILE with --run FILE (see forager search --help)",
      );
    if (explain && !isOne) throw new UsageError("search: --explain explains one query; leave out --queries");
    if (run !== undefined) await requireNewPath(run, "choose another file or remove it");
    const read = queries === undefined ? [] : await readQueries(queries);
    if (query !== undefined) await requireShort(query, folder, options);
    const opened = new Closers();
    try {
      const { retriever: found, passageById, remarkOn } = await openPlace(folder, options, { io, opened });
      const retriever = await recorded(found, record, opened);
      const remark = isOne ? remarkOn?.(query) : undefined;
      if (remark !== undefined) io.note(remark);
      if (isOne && explain) return await explainOne(retriever, { query, k: k ?? 3, passageById }, io);
      if (isOne) return await searchOne(retriever, { query, k: k ?? 3 }, io);
      return await searchAll(retriever, { queries: read, k: k ?? 20, path: run as string }, io);
    } finally {
      await opened.close();
    }
  },
});

/** ONNX Runtime overflows its stack while it loads when the command line is longer than some 28,000 bytes. */
const LONGEST_ARGUMENT = 16_384;

async function requireShort(
  query: string,
  folder: string,
  { mode, rerank }: { readonly mode?: string | undefined; readonly rerank?: string | undefined },
): Promise<void> {
  const hasModel = rerank !== undefined || (mode !== "bm25" && (await exists(denseFolder(folder))));
  if (!hasModel || Buffer.byteLength(query) <= LONGEST_ARGUMENT) return;
  throw new UsageError(
    `search: expected a query of at most ${LONGEST_ARGUMENT} bytes on the command line where a model reads it, got ${Buffer.byteLength(query)}; put it in a file with --queries, or search with --mode bm25`,
  );
}

async function recorded(retriever: Retriever, file: string | undefined, opened: Closers): Promise<Retriever> {
  if (file === undefined) return retriever;
  const recording = await recordRetriever(retriever, file);
  opened.defer(() => recording.close());
  return recording;
}

interface Explained {
  readonly query: string;
  readonly k: number;
  /** For the titles of what an early stage found and a later one dropped. */
  readonly passageById: ((id: string) => Passage | undefined) | undefined;
}

async function explainOne(
  retriever: Retriever,
  { query, k, passageById }: Explained,
  io: CommandIo,
): Promise<CommandResult> {
  const { stages, answer } = await explainRetrieval(
    retriever,
    { query, k },
    { now: io.progress.now, signal: io.signal },
  );
  const titles = new Map(answer.map(({ passage }) => [passage.id, passage.title]));
  const titleOf = (id: string): string => titles.get(id) ?? passageById?.(id)?.title ?? "";
  for (const stage of stages) io.print(stageText(stage, { k, titleOf }));
  return { json: { stages, results: answer.map(resultJson) } };
}

/** The first passages of a stage, each with where the stages before had it. */
function stageText(
  { name, milliseconds, ranked }: Stage,
  { k, titleOf }: { readonly k: number; readonly titleOf: (id: string) => string },
): string {
  const lines = ranked.slice(0, k).map(({ id, score, rank, before }) => {
    const was = Object.entries(before).map(([stage, place]) => `${stage} ${place}`);
    const moved = was.length === 0 ? "" : `  (${was.join(", ")})`;
    return `  ${rank}. ${visibleText(id)}  ${score.toFixed(4)}  ${visibleText(titleOf(id))}${moved}`;
  });
  return [`${name}: ${ranked.length} passages in ${milliseconds.toFixed(1)} ms`, ...lines].join("\n");
}

const resultJson = ({ passage: { id, title, text }, score }: ScoredPassage) => ({ id, title, text, score });

async function searchOne(
  retriever: Retriever,
  { query, k }: { readonly query: string; readonly k: number },
  io: CommandIo,
): Promise<CommandResult> {
  const [found = []] = await retriever.retrieve([query], k, io.signal);
  if (found.length === 0) io.print("nothing found; try other words");
  found.forEach((result, rank) => {
    io.print(resultText(result, rank + 1));
  });
  return { json: { results: found.map(resultJson) } };
}

function resultText({ passage, score }: ScoredPassage, rank: number): string {
  const text = visibleText(passage.text).replace(/\s+/g, " ");
  const shortened = text.length > 240 ? `${text.slice(0, 239)}…` : text;
  const [id, title] = [visibleText(passage.id), visibleText(passage.title)];
  const name = title === "" ? `${id} (` : `${title} (${id}, `;
  return `${rank}. ${name}score ${score.toFixed(3)})\n   ${shortened}`;
}

interface ManyQueries {
  readonly queries: readonly QueryText[];
  readonly k: number;
  /** Of the run. */
  readonly path: string;
}

async function searchAll(retriever: Retriever, task: ManyQueries, io: CommandIo): Promise<CommandResult> {
  const { queries, k, path } = task;
  const started = io.progress.now();
  const progress = startProgress({ label: "searching", total: queries.length, unit: "queries" }, io.progress);
  let done = 0;
  let withoutResults = 0;
  async function* counted() {
    for await (const result of retrieveRun(retriever, queries, { k, signal: io.signal })) {
      if (result[1].length === 0) withoutResults++;
      yield result;
      progress.update(++done);
    }
  }
  await createRun(path, counted(), retriever.identity.method);
  const seconds = (io.progress.now() - started) / 1000;
  progress.finish();
  io.print(`${queries.length} queries are answered in ${path} (${seconds.toFixed(1)} s)`);
  if (withoutResults > 0) io.print(`${withoutResults} of them found nothing`);
  io.print(`next: ${commandLine("score", path, "--qrels", "QRELS")}`);
  return { json: { run: path, queries: queries.length, k, withoutResults, seconds, ...retriever.identity } };
}
