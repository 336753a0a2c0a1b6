/**
 * JSON Lines: one object a line. A byte order mark, any line ends and blank lines are tolerated. What is wrong with
 * a line is a value here, so that the caller decides whether to stop or to skip.
 */
import { DataFormatError } from "../../errors.ts";
import type { TextContext } from "./decode.ts";
import { describeValue, escaped, excerpt, type JsonRecord, type RecordLine } from "./json-record.ts";
import type { ByteSource } from "./open-bytes.ts";
import { lineBatches } from "./text-lines.ts";

/** The records of a source with their lines, many at a time. */
export async function* jsonLines(
  bytes: ByteSource,
  context: TextContext,
): AsyncGenerator<readonly RecordLine[]> {
  for await (const { first, lines } of lineBatches(bytes, context)) {
    const records: RecordLine[] = [];
    for (let i = 0; i < lines.length; i++) {
      const text = lines[i] as (typeof lines)[number];
      const line = first + i;
      if (typeof text !== "string") records.push({ line, error: text });
      else if (text.trim() !== "") records.push({ line, ...parseRecord(text, context.path, line) });
    }
    yield records;
  }
}

/** The object that a text holds, or why it holds none. */
export function parseRecord(
  text: string,
  path: string,
  line: number,
): { readonly record: JsonRecord } | { readonly error: DataFormatError } {
  const expected = "expected one JSON object on the line";
  try {
    const value: unknown = JSON.parse(text);
    const isObject = value !== null && typeof value === "object" && !Array.isArray(value);
    if (isObject) return { record: value as JsonRecord };
    return { error: new DataFormatError(path, line, `${expected}, got ${describeValue(value)}`) };
  } catch (cause) {
    const advice = text.includes("\0")
      ? "; it holds NUL bytes: the file is damaged, or is UTF-16 (--encoding utf-16le)"
      : "";
    const came = `${excerpt(text)} (${escaped((cause as SyntaxError).message)})${advice}`;
    return { error: new DataFormatError(path, line, `${expected}, got ${came}`, { cause }) };
  }
}
