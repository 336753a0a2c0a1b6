/**
 * Queries for the evaluation of retrieval: an id and a text, without answers. JSON Lines of BEIR (`_id`, `text`) or with
 * `id`, `qid`, `query`, `question`; CSV and TSV with such a header or as rows of id and text; Parquet.
 */
import { DataFormatError } from "../errors.ts";
import { describeValue } from "./formats/json-record.ts";
import { questionRecords } from "./formats/question-records.ts";
import { queryLayout } from "./formats/table-layouts.ts";
import { describeWrongId, idOf } from "./passage-record.ts";

export interface QueryText {
  readonly id: string;
  readonly text: string;
}

const idKeys = ["id", "_id", "qid", "query_id", "query-id"];
const textKeys = ["text", "query", "question"];

export interface ReadQueriesOptions {
  /** Encoding of texts that are not UTF-8. */
  readonly encoding?: string | undefined;
}

/**
 * The queries of a file in order. Throws `DataFormatError` (file, line) for a record without id or text, a repeated id
 * and a file without queries; `FileError` when it cannot be read.
 */
export async function readQueries(path: string, { encoding }: ReadQueriesOptions = {}): Promise<QueryText[]> {
  const queries: QueryText[] = [];
  const lineOf = new Map<string, number | undefined>();
  for await (const entry of questionRecords({ path, encoding, layoutOf: queryLayout })) {
    if ("error" in entry) throw entry.error;
    const { record, line } = entry;
    const wrong = (message: string) => new DataFormatError(path, line, message);
    const id = idKeys.map((key) => idOf(record[key])).find((found) => found !== undefined);
    if (id === undefined) throw wrong(`expected "id" or "_id", ${describeWrongId(record.id ?? record._id)}`);
    const text = textKeys.map((key) => record[key]).find((found) => typeof found === "string");
    if (typeof text !== "string" || text.trim() === "")
      throw wrong(
        `expected "text", "query" or "question", a text that is not empty, got ${describeValue(text)}`,
      );
    if (lineOf.has(id))
      throw wrong(`expected ids without repeats, got ${JSON.stringify(id)} of line ${lineOf.get(id)} again`);
    lineOf.set(id, line);
    queries.push({ id, text });
  }
  if (queries.length === 0)
    throw new DataFormatError(
      path,
      undefined,
      'expected queries, one JSON object a line such as {"id":"1","text":"…"}, got none',
    );
  return queries;
}
