/** Any file of a corpus as items in order: records for tables and JSON, documents for the rest. */
import { DataFormatError } from "../../errors.ts";
import type { CorpusFormat } from "../corpus-options.ts";
import { type PassageKeys, passageKeys } from "../passage-record.ts";
import type { TextContext } from "./decode.ts";
import { tableRecords } from "./delimited.ts";
import { detectFormat, isDocumentFormat } from "./detect.ts";
import type { DocumentText } from "./document.ts";
import type { CorpusFile } from "./find-files.ts";
import { jsonLines } from "./json-lines.ts";
import type { JsonRecord, RecordLine } from "./json-record.ts";
import { jsonValues } from "./json-values.ts";
import { type OnBytes, openBytes } from "./open-bytes.ts";
import { parquetRows } from "./parquet.ts";
import { readDocument } from "./read-document.ts";
import { passageLayout } from "./table-layouts.ts";
import { wikipediaArticles } from "./wikipedia.ts";

/** A record or a document, or why there is none. `line` counts from 1; rows of Parquet count as lines. */
export type CorpusItem =
  | RecordLine
  | { readonly line: number | undefined; readonly id: string; readonly document: DocumentText };

export interface FileItems {
  readonly format: CorpusFormat;
  /** Many at a time. */
  readonly batches: AsyncIterable<readonly CorpusItem[]>;
}

export interface FileOptions {
  readonly encoding: string | undefined;
  readonly keys: PassageKeys;
  readonly onBytes: OnBytes;
}

/** Opens a file. Throws `FileError`, and `DataFormatError` when the format cannot be told; reading throws the same. */
export async function readFileItems(file: CorpusFile, options: FileOptions): Promise<FileItems> {
  const format = file.format ?? (await detectFormat(file.path));
  const context: TextContext = { path: file.path, encoding: options.encoding };
  if (isDocumentFormat(format))
    return { format, batches: oneDocument(file, { context, format }, options.onBytes) };
  if (format === "parquet")
    return { format, batches: withRowIds(parquetLines(file.path, options), file, options) };
  const bytes = openBytes(file.path, options.onBytes);
  if (format === "wikipedia") return { format, batches: articles(bytes, context) };
  if (format === "jsonl") return { format, batches: jsonLines(bytes, context) };
  if (format === "json") return { format, batches: jsonValues(bytes, context) };
  const delimiter = format === "tsv" ? "\t" : undefined;
  const layoutOf = passageLayout(options.keys);
  const rows = tableRecords(bytes, { ...context, delimiter, layoutOf });
  return { format, batches: withRowIds(withKiltTitles(rows), file, options) };
}

/** Tables made of KILT have both in one column: `Title: … Text: …`. */
const kiltText = /^Title: (.+?) Text: +/s;

async function* withKiltTitles(
  batches: AsyncIterable<readonly RecordLine[]>,
): AsyncGenerator<readonly RecordLine[]> {
  for await (const batch of batches)
    yield batch.map((entry) => {
      if ("error" in entry) return entry;
      const { title, text } = entry.record;
      const found = title === undefined && typeof text === "string" ? kiltText.exec(text) : null;
      if (found === null) return entry;
      const parts = { title: found[1], text: (text as string).slice(found[0].length) };
      return { line: entry.line, record: { ...entry.record, ...parts } };
    });
}

async function* oneDocument(
  file: CorpusFile,
  { context, format }: { readonly context: TextContext; readonly format: CorpusFormat },
  onBytes: OnBytes,
): AsyncGenerator<readonly CorpusItem[]> {
  const document = await readDocument(context, format, onBytes);
  yield [{ line: undefined, id: file.id, document }];
}

async function* articles(
  bytes: AsyncIterable<Uint8Array>,
  context: TextContext,
): AsyncGenerator<readonly CorpusItem[]> {
  for await (const article of wikipediaArticles(bytes, context)) yield [article];
}

async function* parquetLines(
  path: string,
  { keys, onBytes }: FileOptions,
): AsyncGenerator<readonly RecordLine[]> {
  for await (const { first, rows } of parquetRows(path, onBytes)) {
    if (first === 0) requireTextColumn(path, rows[0], keys);
    yield rows.map((record, i) => ({ line: first + i + 1, record }));
  }
}

function requireTextColumn(path: string, row: JsonRecord | undefined, keys: PassageKeys): void {
  if (row === undefined || keys.text.some((key) => key in row)) return;
  throw new DataFormatError(
    path,
    undefined,
    `expected a column ${keys.text.map((key) => JSON.stringify(key)).join(" or ")}, got ${Object.keys(row).join(", ")}; say which it is (columns.text=NAME)`,
  );
}

/** Tables often have no ids: the rows get the file and their number, from 0. A declared column is not made up. */
async function* withRowIds(
  batches: AsyncIterable<readonly RecordLine[]>,
  file: CorpusFile,
  { keys }: FileOptions,
): AsyncGenerator<readonly RecordLine[]> {
  let row = 0;
  for await (const batch of batches) {
    const from = row;
    row += batch.length;
    if (keys.id !== passageKeys.id) yield batch;
    else
      yield batch.map((entry, i) => {
        if ("error" in entry || keys.id.some((key) => key in entry.record)) return entry;
        return { line: entry.line, record: { id: `${file.id}#${from + i}`, ...entry.record } };
      });
  }
}
