/** Queries on disk, with the ids that qrels and runs name: JSON Lines as BEIR, FlashRAG and Search-R1 have them. */
import { DataFormatError } from "../../errors.ts";
import { textLines } from "./text-lines.ts";

export interface Query {
  readonly id: string;
  readonly text: string;
}

/**
 * Queries of a JSON Lines file: the id is `id` or `_id`, else the number of the line; the text is `question`, `query`
 * or `text`, whichever comes first. Throws `DataFormatError` (file, line) for a line without text or an id that
 * comes twice, and for a file without queries.
 */
export async function readQueries(path: string): Promise<Query[]> {
  const queries: Query[] = [];
  const lineOf = new Map<string, number>();
  for await (const line of textLines(path)) {
    const query = queryOf(line.text, (message) => new DataFormatError(path, line.number, message));
    const id = query.id ?? String(line.number);
    const first = lineOf.get(id);
    if (first !== undefined)
      throw new DataFormatError(
        path,
        line.number,
        `expected ids without repeats, got ${JSON.stringify(id)} of line ${first} again`,
      );
    lineOf.set(id, line.number);
    queries.push({ id, text: query.text });
  }
  if (queries.length === 0)
    throw new DataFormatError(
      path,
      undefined,
      'expected queries, one JSON object a line such as {"id":"1","question":"…"}, got none',
    );
  return queries;
}

function queryOf(
  line: string,
  wrong: (message: string) => DataFormatError,
): { readonly id: string | undefined; readonly text: string } {
  let record: unknown;
  try {
    record = JSON.parse(line);
  } catch (cause) {
    throw wrong(
      `expected one JSON object on the line, got ${JSON.stringify(line.slice(0, 40))} (${(cause as Error).message})`,
    );
  }
  const { id, _id, question, query, text } = (record ?? {}) as Readonly<Record<string, unknown>>;
  const words = [question, query, text].find((value) => typeof value === "string" && value.trim() !== "");
  if (words === undefined)
    throw wrong(
      `expected "question", "query" or "text", a text that is not empty, got ${JSON.stringify(line.slice(0, 60))}`,
    );
  const key = id ?? _id;
  if (key !== undefined && typeof key !== "number" && (typeof key !== "string" || key === ""))
    throw wrong(`expected "id" or "_id", a text or a number, got ${JSON.stringify(key)}`);
  return { id: key === undefined ? undefined : String(key), text: words as string };
}
