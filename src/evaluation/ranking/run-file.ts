/**
 * Runs on disk: TREC (query, Q0, passage, rank, score, tag; white space between them) and JSON
 * `{"query id": {"passage id": score}}`. What counts is the score: the rank of a line is not looked at, as in
 * trec_eval, and a file that was cut or shuffled reads the same.
 */
import { open, rename, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { DataFormatError, FileError } from "../../errors.ts";
import { exists, fileError, makeFolder } from "../../shared/files.ts";
import type { Run, RunEntry } from "./ranking.ts";
import { columnsOf, type ParseLine, readTable, requireColumn, type TableFormat } from "./tables.ts";

const COLUMNS = "query, Q0, passage, rank, score, tag";

const format: TableFormat = {
  lineParser,
  number: "a score, a finite number",
  isNumber: Number.isFinite,
};

/** The run of a file; one without rows is the run of a retriever that found nothing. Throws `DataFormatError` (file, line) or `FileError`. */
export async function readRun(path: string): Promise<Run> {
  const table = await readTable(path, format);
  return new Map(
    [...table].map(([query, scores]) => [query, Array.from(scores, ([id, score]) => ({ id, score }))]),
  );
}

function lineParser(path: string): ParseLine {
  return ({ number, text }) => {
    const columns = columnsOf(text);
    const [query, , passage, , score] = columns;
    if (query === undefined || passage === undefined || score === undefined || columns.length !== 6)
      throw new DataFormatError(
        path,
        number,
        `expected 6 columns (${COLUMNS}), got ${columns.length}: ${JSON.stringify(text.slice(0, 80))}`,
      );
    const value = Number(score);
    if (!/\d/.test(score) || !Number.isFinite(value))
      throw new DataFormatError(
        path,
        number,
        `expected a score, a finite number, in column 5, got ${JSON.stringify(score)}`,
      );
    return { query, passage, value };
  };
}

/**
 * One query of a run as lines of TREC, in the order given, with ranks from 1. Scores are written so that they read
 * back equal. Throws `FileError` for ids that TREC cannot hold.
 */
export function runLines(query: string, entries: readonly RunEntry[], tag: string): string {
  const fail = (message: string): Error => new FileError(message);
  requireColumn("query id", query, fail);
  requireColumn("tag", tag, fail);
  let lines = "";
  entries.forEach(({ id, score }, i) => {
    requireColumn("passage id", id, fail);
    lines += `${query} Q0 ${id} ${i + 1} ${score} ${tag}\n`;
  });
  return lines;
}

export type QueryResults = readonly [query: string, entries: readonly RunEntry[]];

/**
 * Writes a run into the new file `path` as its results come, as JSON where the name ends in `.json`, else as TREC;
 * returns the number of queries. The file appears when all is written, and nothing is left behind when that fails.
 * Throws `FileError`, also when `path` exists, and what `results` throws.
 */
export async function createRun(
  path: string,
  results: Iterable<QueryResults> | AsyncIterable<QueryResults>,
  tag: string,
): Promise<number> {
  const counted = { queries: 0 };
  await createFileAtomic(path, path.endsWith(".json") ? jsonPieces(results, counted) : trecPieces());
  return counted.queries;

  async function* trecPieces(): AsyncGenerator<string> {
    for await (const [query, entries] of results) {
      counted.queries++;
      yield runLines(query, entries, tag);
    }
  }
}

async function* jsonPieces(
  results: Iterable<QueryResults> | AsyncIterable<QueryResults>,
  counted: { queries: number },
): AsyncGenerator<string> {
  for await (const [query, entries] of results) {
    const scores = Object.fromEntries(entries.map(({ id, score }) => [id, score]));
    yield `${counted.queries++ === 0 ? "{" : ",\n"}${JSON.stringify(query)}:${JSON.stringify(scores)}`;
  }
  yield counted.queries === 0 ? "{}\n" : "}\n";
}

async function createFileAtomic(path: string, pieces: AsyncIterable<string>): Promise<void> {
  const temporary = join(dirname(path), `.${basename(path)}.${process.pid}.partial`);
  try {
    await requireAbsent(path);
    await makeFolder(dirname(path));
    const handle = await open(temporary, "w");
    try {
      for await (const piece of pieces) await handle.writeFile(piece);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await requireAbsent(path);
    await rename(temporary, path);
  } catch (cause) {
    await rm(temporary, { force: true }).catch(() => undefined);
    throw fileError(`cannot write ${path}`, cause);
  }
}

async function requireAbsent(path: string): Promise<void> {
  if (await exists(path)) throw new FileError(`${path} exists already; choose another file or remove it`);
}
