/** `forager search`: the best passages of an index for one query, or a run for a file of queries. */

import { type QueryText, readQueries } from "../../corpus/read-queries.ts";
import { UsageError } from "../../errors.ts";
import { retrieveRun } from "../../evaluation/ranking/retrieve-run.ts";
import { createRun } from "../../evaluation/ranking/run-file.ts";
import { startProgress } from "../../reporting/progress.ts";
import { visibleText } from "../../reporting/transcript.ts";
import { openIndex } from "../../retrieval/index-folder.ts";
import type { Retriever, ScoredPassage } from "../../retrieval/retriever.ts";
import { type CommandIo, type CommandResult, defineCommand } from "../command.ts";
import { requireNewPath } from "../new-path.ts";
import { commandLine } from "../shell-word.ts";

export const searchCommand = defineCommand({
  name: "search",
  summary: "Search an index.",
  details:
    "With --queries and --run a whole file of queries is answered, into a TREC run that forager score and trec_eval\n" +
    'read. A query is a line of JSON: its id is "id" or "_id", its text "text", "query" or "question".',
  args: [
    { name: "INDEX", doc: "a folder made by forager index" },
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
  },
  examples: [
    'search index "capital of France"',
    'search index "capital of France" -k 10 --json',
    "search index --queries questions.jsonl -k 20 --run bm25.trec",
  ],
  async run({ args, options: { k, queries, run } }, io) {
    const [folder, query] = args as [string, string | undefined];
    if (query !== undefined && queries === undefined && run === undefined)
      return await searchOne(await openRetriever(folder), { query, k: k ?? 3 }, io);
    if (query !== undefined || queries === undefined || run === undefined)
      throw new UsageError(
        "search: give either a query, or --queries FILE with --run FILE (see forager search --help)",
      );
    await requireNewPath(run, "choose another file or remove it");
    const read = await readQueries(queries);
    return await searchAll(await openRetriever(folder), { queries: read, k: k ?? 20, path: run }, io);
  },
});

async function openRetriever(folder: string): Promise<Retriever> {
  return await openIndex(folder);
}

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
  const results = found.map(({ passage: { id, title, text }, score }) => ({ id, title, text, score }));
  return { json: { results } };
}

function resultText({ passage, score }: ScoredPassage, rank: number): string {
  const text = visibleText(passage.text).replace(/\s+/g, " ");
  const shortened = text.length > 240 ? `${text.slice(0, 239)}…` : text;
  return `${rank}. ${visibleText(passage.title)} (${visibleText(passage.id)}, score ${score.toFixed(3)})\n   ${shortened}`;
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
