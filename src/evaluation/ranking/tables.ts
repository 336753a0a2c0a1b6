/**
 * Files of qrels and of runs are the same kind of table: query id, passage id, a number. This reads one, as rows of
 * text or as JSON `{"query id": {"passage id": number}}`, and finds rows that come twice. What the columns are is
 * the caller's.
 */
import { DataFormatError } from "../../errors.ts";
import { readJsonFile, type TextLine, textLines } from "./text-lines.ts";

export interface Row {
  readonly query: string;
  readonly passage: string;
  readonly value: number;
}

/** Reads one line; undefined for a header. Throws `DataFormatError`. */
export type ParseLine = (line: TextLine) => Row | undefined;

export interface TableFormat {
  /** A reader of the lines of `path`; `first` is the first line, which may say which dialect it is. */
  lineParser(path: string, first: string): ParseLine;
  /** What a number of the JSON form is, such as `a grade (an integer)`. */
  readonly number: string;
  isNumber(value: number): boolean;
  /** What a file without rows should have held; absent: such a file is an empty table. */
  readonly expected?: string;
}

/** The numbers by query and passage, in the order of the file; lines that begin with "# " are comments. Throws `DataFormatError` or `FileError`. */
export async function readTable(
  path: string,
  format: TableFormat,
): Promise<Map<string, Map<string, number>>> {
  const table = new Map<string, Map<string, number>>();
  let parse: ParseLine | undefined;
  for await (const line of textLines(path)) {
    if (isComment(line.text)) continue;
    if (parse === undefined && line.text.trimStart().startsWith("{"))
      return await readJsonTable(path, format);
    parse ??= format.lineParser(path, line.text);
    const row = parse(line);
    if (row !== undefined) addRow(table, row, (message) => new DataFormatError(path, line.number, message));
  }
  if (table.size === 0 && format.expected !== undefined)
    throw new DataFormatError(path, undefined, `expected ${format.expected}, got no row`);
  return table;
}

/** A row that repeats another word for word changes nothing and is dropped. */
function addRow(
  table: Map<string, Map<string, number>>,
  { query, passage, value }: Row,
  wrong: (message: string) => DataFormatError,
): void {
  const row = table.get(query) ?? new Map<string, number>();
  const before = row.get(passage);
  if (before !== undefined && before !== value)
    throw wrong(
      `expected each passage once for a query, got ${passage} for ${query} again, with ${value} after ${before}`,
    );
  row.set(passage, value);
  table.set(query, row);
}

async function readJsonTable(path: string, format: TableFormat): Promise<Map<string, Map<string, number>>> {
  const wrong = (message: string): DataFormatError => new DataFormatError(path, undefined, message);
  const value = await readJsonFile(path);
  const table = new Map<string, Map<string, number>>();
  for (const [query, row] of Object.entries(value as object)) {
    if (row === null || typeof row !== "object" || Array.isArray(row))
      throw wrong(`expected {"query id": {"passage id": number}}, got ${JSON.stringify(row)} for ${query}`);
    const entries = Object.entries(row as Record<string, unknown>);
    for (const [passage, number] of entries)
      if (typeof number !== "number" || !format.isNumber(number))
        throw wrong(
          `expected ${format.number} for query ${query}, passage ${passage}, got ${JSON.stringify(number)}`,
        );
    table.set(query, new Map(entries as [string, number][]));
  }
  if (table.size === 0 && format.expected !== undefined)
    throw wrong(`expected ${format.expected}, got no query`);
  return table;
}

/** The columns of a line between runs of white space. */
export function columnsOf(text: string): string[] {
  return text.trim().split(/[\t\v\f\r ]+/);
}

/** Lines that trec_eval passes over too. */
function isComment(line: string): boolean {
  return line === "#" || line.startsWith("# ");
}

/** Refuses what a column of a TREC file cannot hold. A query id is the first column: it must not begin a comment or JSON. */
export function requireColumn(kind: string, id: string, fail: (message: string) => Error): void {
  if (id === "" || /\s/.test(id) || (kind === "query id" && /^[#{]/.test(id)))
    throw fail(
      `a TREC file cannot hold the ${kind} ${JSON.stringify(id)}: ids there are not empty, have no white space, and those of queries do not begin with # or {; write JSON (a name that ends in .json) or change the id`,
    );
}
