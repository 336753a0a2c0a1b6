/**
 * JSON Lines, streamed: one object a line, UTF-8. A byte order mark, CRLF and blank lines are tolerated. What is
 * wrong with a line is a value here, so that the caller decides whether to stop or to skip.
 */
import { createReadStream } from "node:fs";
import { DataFormatError } from "../errors.ts";
import { fileError } from "../shared/files.ts";

export type JsonRecord = Readonly<Record<string, unknown>>;

/** A line that is not blank, counted from 1: its object, or why it has none. */
export type JsonLine = { readonly line: number } & (
  | { readonly record: JsonRecord }
  | { readonly error: DataFormatError }
);

/** The lines of the file `path`; throws `FileError` when it cannot be read. */
export async function* readJsonLines(path: string): AsyncGenerator<JsonLine> {
  let line = 0;
  for await (const bytes of linesOf(path)) {
    line++;
    const parsed = parseLine(bytes, path, line);
    if (parsed !== undefined) yield parsed;
  }
}

/** Takes a byte order mark off the start of a line, in effect of the first. */
const decoder = new TextDecoder("utf-8", { fatal: true });
const NEWLINE = 10;

function parseLine(bytes: Uint8Array, path: string, line: number): JsonLine | undefined {
  const wrong = (expected: string, came: string, cause?: unknown): JsonLine => ({
    line,
    error: new DataFormatError(path, line, `expected ${expected}, got ${came}`, { cause }),
  });
  let text: string;
  try {
    text = decoder.decode(bytes);
  } catch (cause) {
    return wrong("UTF-8 text", "other bytes; convert the file to UTF-8", cause);
  }
  if (text.trim() === "") return undefined;
  const expected = "one JSON object on the line";
  try {
    const value: unknown = JSON.parse(text);
    const isObject = value !== null && typeof value === "object" && !Array.isArray(value);
    return isObject ? { line, record: value as JsonRecord } : wrong(expected, describeValue(value));
  } catch (cause) {
    return wrong(expected, `${excerpt(text)} (${(cause as SyntaxError).message})`, cause);
  }
}

/** A value of a record for an error message, such as `the number 7` or `an empty text`. */
export function describeValue(value: unknown): string {
  if (value === undefined) return "nothing";
  if (value === null) return "null";
  if (Array.isArray(value)) return value.length === 0 ? "an empty list" : `a list of ${value.length}`;
  if (typeof value === "string") return value.trim() === "" ? "an empty text" : excerpt(value);
  return typeof value === "object" ? "an object" : `the ${typeof value} ${String(value)}`;
}

function excerpt(text: string): string {
  const whole = text.trim();
  return JSON.stringify(whole.length <= 40 ? whole : `${whole.slice(0, 40)}…`);
}

/** Lines without their end; the pieces of a long line are joined once. */
async function* linesOf(path: string): AsyncGenerator<Uint8Array> {
  let pieces: Uint8Array[] = [];
  try {
    for await (const chunk of createReadStream(path, { highWaterMark: 1 << 18 }) as AsyncIterable<Buffer>) {
      let start = 0;
      for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, start)) {
        const piece = chunk.subarray(start, end);
        yield pieces.length === 0 ? piece : Buffer.concat([...pieces, piece]);
        pieces = [];
        start = end + 1;
      }
      if (start < chunk.length) pieces.push(chunk.subarray(start));
    }
  } catch (cause) {
    throw fileError(`cannot read ${path}`, cause);
  }
  if (pieces.length > 0) yield Buffer.concat(pieces);
}
