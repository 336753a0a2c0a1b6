/**
 * Runs on disk: TREC (query, Q0, passage, rank, score, tag; white space between them) and JSON
 * `{"query id": {"passage id": score}}`. What counts is the score: the rank of a line is not looked at, as in
 * trec_eval, and a file that was cut or shuffled reads the same.
 */
import { DataFormatError, FileError } from "../../errors.ts";
import { writeFileAtomic } from "../../shared/files.ts";
import type { Run, RunEntry } from "./ranking.ts";
import { columnsOf, type ParseLine, readTable, requireColumn, type TableFormat } from "./tables.ts";

const COLUMNS = "query, Q0, passage, rank, score, tag";

const format: TableFormat = {
  lineParser,
  number: "a score, a finite number",
  isNumber: Number.isFinite,
  expected: `results, one a line with 6 columns (${COLUMNS})`,
};

/** The run of a file. Throws `DataFormatError` (file, line) or `FileError`. */
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

/** Writes a run in one step, as JSON where the name ends in `.json`, else as TREC. Throws `FileError`. */
export async function writeRun(path: string, run: Run, tag: string): Promise<void> {
  if (path.endsWith(".json")) {
    const scores = Array.from(run, ([query, entries]) => [
      query,
      Object.fromEntries(entries.map(({ id, score }) => [id, score])),
    ]);
    return await writeFileAtomic(path, `${JSON.stringify(Object.fromEntries(scores))}\n`);
  }
  const pieces = Array.from(run, ([query, entries]) => Buffer.from(runLines(query, entries, tag)));
  await writeFileAtomic(path, Buffer.concat(pieces));
}
