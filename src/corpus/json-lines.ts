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

const decoder = new TextDecoder("utf-8", { fatal: true });
/** What a decoder strips at the start of a text; in the middle of a file it is a character like others. */
const NEWLINE = 10;

function parseLine(bytes: Uint8Array, path: string, line: number): JsonLine | undefined {
  let text: string;
  try {
    text = decoder.decode(bytes);
  } catch {
    return {
      line,
      error: new DataFormatError(
        path,
        line,
        "expected UTF-8 text, got other bytes; convert the file to UTF-8",
      ),
    };
  }
  if (text.trim() === "") return undefined;
  const expected = "expected one JSON object on the line";
  try {
    const value: unknown = JSON.parse(text);
    if (value !== null && typeof value === "object" && !Array.isArray(value))
      return { line, record: value as JsonRecord };
    return { line, error: new DataFormatError(path, line, `${expected}, got ${describeValue(value)}`) };
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    return {
      line,
      error: new DataFormatError(path, line, `${expected}, got ${excerpt(text)} (${reason})`, { cause }),
    };
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
  const [shown] = [text.trim().slice(0, 40)];
  return JSON.stringify(shown === text.trim() ? shown : `${shown}…`);
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
