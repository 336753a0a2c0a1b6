/**
 * Tables as text: CSV and TSV. The delimiter is the most frequent candidate of the first line; quotes count in CSV,
 * and in TSV only when the first part of the file uses them as CSV does (DPR and KILT do, MS MARCO does not). Which
 * column is what is for the caller's layout to say.
 */
import { pipeline, Readable } from "node:stream";
import { DataFormatError } from "../../errors.ts";
import { decodeText, type TextContext } from "./decode.ts";
import type { JsonRecord, RecordLine } from "./json-record.ts";
import type { ByteSource } from "./open-bytes.ts";

/** The columns of a table by name, and whether its first row was their header. */
export interface TableLayout {
  /** A column whose name is empty is left out. */
  readonly columns: readonly string[];
  /** Names of the columns that are read as something; all others are only kept. */
  readonly used: readonly string[];
  readonly hasHeader: boolean;
}

/** Decides the columns from the first row. Throws `DataFormatError` when it cannot. */
export type LayoutOf = (first: readonly string[], place: TablePlace) => TableLayout;

export interface TablePlace {
  readonly path: string;
  readonly line: number;
  readonly delimiter: string;
}

export interface TableContext extends TextContext {
  /** As the name of the file says; undefined: to be found. */
  readonly delimiter?: string | undefined;
  readonly layoutOf: LayoutOf;
}

interface Row {
  readonly line: number;
  readonly cells: readonly string[];
}

const batchSize = 512;
/** A record that is longer comes from a quote that was never closed. */
const longestRecord = 1 << 26;

/** The rows as records with a text for each column, many at a time; a row of another width is an error of that row. */
export async function* tableRecords(
  bytes: ByteSource,
  context: TableContext,
): AsyncGenerator<readonly RecordLine[]> {
  let layout: TableLayout | undefined;
  let batch: RecordLine[] = [];
  for await (const { line, cells, delimiter } of tableRows(bytes, context)) {
    if (layout === undefined) {
      layout = context.layoutOf(cells, { path: context.path, line, delimiter });
      requireApart(layout, { path: context.path, line });
      if (layout.hasHeader) continue;
    }
    batch.push({ line, ...rowRecord(cells, layout.columns, { path: context.path, line }) });
    if (batch.length < batchSize) continue;
    yield batch;
    batch = [];
  }
  yield batch;
}

/** Of two columns with one name the second would take the place of the first, which matters where it is read. */
function requireApart(
  { columns, used }: TableLayout,
  place: { readonly path: string; readonly line: number },
): void {
  const twice = columns.find((column, i) => used.includes(column) && columns.indexOf(column) < i);
  if (twice === undefined) return;
  throw new DataFormatError(
    place.path,
    place.line,
    `expected columns with names of their own, got ${JSON.stringify(twice)} twice; rename one of them`,
  );
}

function rowRecord(
  cells: readonly string[],
  columns: readonly string[],
  { path, line }: { readonly path: string; readonly line: number },
): { readonly record: JsonRecord } | { readonly error: DataFormatError } {
  const surplus = cells.slice(columns.length).some((cell) => cell !== "");
  if (cells.length < columns.length || surplus) {
    const message = `expected ${columns.length} columns (${columns.join(", ")}), got ${cells.length}`;
    return { error: new DataFormatError(path, line, message) };
  }
  const named = columns.map((column, i) => [column, cells[i]] as const).filter(([column]) => column !== "");
  return { record: Object.fromEntries(named) };
}

async function* tableRows(
  bytes: ByteSource,
  context: TableContext,
): AsyncGenerator<Row & { readonly delimiter: string }> {
  const texts = decodeText(bytes, context);
  const head = await firstText(texts);
  if (head === undefined) return;
  const delimiter = context.delimiter ?? findDelimiter(head);
  const hasQuotes = delimiter !== "\t" || usesQuotes(head, delimiter);
  const { parse } = await import("csv-parse");
  const parser = parse({
    delimiter,
    quote: hasQuotes ? '"' : false,
    relax_quotes: true,
    relax_column_count: true,
    record_delimiter: head.includes("\n") ? ["\r\n", "\n"] : ["\r"],
    max_record_size: longestRecord,
  });
  pipeline(Readable.from(chained(head, texts)), parser, () => undefined);
  let line = 1;
  try {
    for await (const cells of parser as AsyncIterable<string[]>) {
      if (cells.length > 1 || cells[0] !== "") yield { line, cells, delimiter };
      line += 1 + cells.reduce((sum, cell) => sum + lineEnds(cell), 0);
    }
  } catch (cause) {
    throw tableError(cause, context.path, line);
  } finally {
    parser.destroy();
  }
}

function tableError(cause: unknown, path: string, line: number): unknown {
  const code = (cause as { code?: unknown }).code;
  if (typeof code !== "string" || !code.startsWith("CSV_")) return cause;
  const isOpen = code === "CSV_QUOTE_NOT_CLOSED" || code === "CSV_MAX_RECORD_SIZE";
  const came = isOpen
    ? "a quote that is never closed; close it, or write the quotes of the text twice"
    : (cause as Error).message;
  return new DataFormatError(path, line, `expected a row of a table, got ${came}`, { cause });
}

/** The first text that is not empty. */
async function firstText(texts: AsyncIterator<string>): Promise<string | undefined> {
  for (let next = await texts.next(); !next.done; next = await texts.next())
    if (next.value !== "") return next.value;
  return undefined;
}

async function* chained(head: string, rest: AsyncIterable<string>): AsyncGenerator<string> {
  yield head;
  for await (const text of rest) if (text !== "") yield text;
}

/** The candidate that occurs most often in the first line outside quotes; a comma when none does. */
function findDelimiter(head: string): string {
  const line = head.slice(0, head.search(/[\r\n]|$/)).replace(/"[^"]*"/g, "");
  const counts = [",", "\t", ";", "|"].map((delimiter) => [delimiter, line.split(delimiter).length] as const);
  return counts.reduce((best, next) => (next[1] > best[1] ? next : best))[0];
}

/** Whether most fields that start with a quote end with one, inner quotes written twice; they may go over lines. */
function usesQuotes(head: string, delimiter: string): boolean {
  const start = new RegExp(`(?:^|[${delimiter}\\n])"`, "g");
  const rest = new RegExp(`(?:[^"]|"")*"(?=[${delimiter}\\r\\n]|$)`, "y");
  let quoted = 0;
  let closed = 0;
  while (start.test(head)) {
    quoted++;
    rest.lastIndex = start.lastIndex;
    if (!rest.test(head)) continue;
    closed++;
    start.lastIndex = rest.lastIndex;
  }
  return closed * 2 > quoted;
}

function lineEnds(text: string): number {
  let count = 0;
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) count++;
  return count;
}
