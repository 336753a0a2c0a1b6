/** The records of a file of questions or queries, whatever the file is: JSON Lines, JSON, Parquet, CSV or TSV. */
import { basename } from "node:path";
import { DataFormatError } from "../../errors.ts";
import { type LayoutOf, tableRecords } from "./delimited.ts";
import { detectFormat } from "./detect.ts";
import { jsonLines } from "./json-lines.ts";
import type { RecordLine } from "./json-record.ts";
import { jsonValues } from "./json-values.ts";
import { openBytes } from "./open-bytes.ts";
import { parquetRows } from "./parquet.ts";

export interface QuestionFile {
  readonly path: string;
  readonly encoding?: string | undefined;
  /** Names the columns of a table. */
  readonly layoutOf: LayoutOf;
}

/** Records in order; rows of Parquet count as lines. Throws `FileError`, and `DataFormatError` for another format. */
export async function* questionRecords({
  path,
  encoding,
  layoutOf,
}: QuestionFile): AsyncGenerator<RecordLine> {
  const format = await detectFormat(path);
  const context = { path, encoding };
  if (format === "parquet") {
    for await (const { first, rows } of parquetRows(path))
      for (const [i, record] of rows.entries()) yield { line: first + i + 1, record };
    return;
  }
  const bytes = openBytes(path);
  let batches: AsyncIterable<readonly RecordLine[]>;
  if (format === "jsonl") batches = jsonLines(bytes, context);
  else if (format === "json") batches = jsonValues(bytes, context);
  else if (format === "csv" || format === "tsv")
    batches = tableRecords(bytes, { ...context, delimiter: format === "tsv" ? "\t" : undefined, layoutOf });
  else throw new DataFormatError(path, undefined, `expected JSONL, JSON, Parquet, CSV or TSV, got ${format}`);
  for await (const batch of batches) yield* batch;
}

/** The name of a file without the endings of its format and compression. */
export function dataSetName(path: string): string {
  return basename(path)
    .replace(/\.(?:gz|zst|bz2)$/i, "")
    .replace(/\.(?:jsonl?|parquet|csv|tsv)$/i, "");
}
