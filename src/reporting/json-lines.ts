/**
 * JSON lines that survive a kill: a line is appended with one write, so only the last line can be torn (cut off
 * in the middle, without a line end). Readers skip a torn last line; writers cut it off before they append. Files are read and
 * written piece by piece: a large evaluation has more characters than one text can hold.
 */
import { createReadStream } from "node:fs";
import { type FileHandle, open, readFile } from "node:fs/promises";
import type { ZodType } from "zod";
import { DataFormatError } from "../errors.ts";
import { exists, fileError, writeFileAtomic } from "../shared/files.ts";

const lineEnd = 0x0a;
const pieceBytes = 1 << 20;

/** Appends one line for each value, all with one write. Throws `FileError`. */
export async function appendJsonLines(path: string, values: readonly unknown[]): Promise<void> {
  if (values.length === 0) return;
  const text = values.map((value) => `${JSON.stringify(value)}\n`).join("");
  await withFile(path, "a", (handle) => handle.appendFile(text));
}

/** Makes `path` safe to append to: a torn last line is cut off, a whole one gets its line end. */
export async function repairJsonLines(path: string): Promise<void> {
  if (!(await exists(path))) return;
  await withFile(path, "r+", async (handle) => {
    const { size } = await handle.stat();
    const { start, bytes } = await lastLine(handle, size);
    if (start === size) return;
    if (isJson(bytes.toString("utf8"))) await handle.write("\n", size);
    else await handle.truncate(start);
    await handle.sync();
  });
}

/** What follows the last line end of a file of `size` bytes, and where it starts. */
async function lastLine(handle: FileHandle, size: number): Promise<{ start: number; bytes: Buffer }> {
  const pieces: Buffer[] = [];
  let start = size;
  while (start > 0) {
    const length = Math.min(pieceBytes, start);
    const piece = Buffer.alloc(length);
    await handle.read(piece, 0, length, start - length);
    const after = piece.lastIndexOf(lineEnd) + 1;
    pieces.unshift(piece.subarray(after));
    start -= length - after;
    if (after > 0) break;
  }
  return { start, bytes: Buffer.concat(pieces) };
}

/**
 * Every record of `path`, checked by `schema`; empty when there is no such file. A torn last line is left out.
 * Throws `DataFormatError` with file and line for any other line that is not what was expected.
 */
export async function readJsonLines<T>(path: string, schema: ZodType<T>): Promise<T[]> {
  const records: T[] = [];
  for await (const record of jsonLines(path, schema)) records.push(record);
  return records;
}

/** The records that `readJsonLines` reads, one after the other as the file is read. Throws the same, and `FileError`. */
export async function* jsonLines<T>(path: string, schema: ZodType<T>): AsyncGenerator<T> {
  if (!(await exists(path))) return;
  for await (const { text, line, isTerminated } of linesOf(path)) {
    if (text === "" || (!isTerminated && !isJson(text))) continue;
    yield parseRecord(text, schema, { file: path, line });
  }
}

interface Line {
  /** Without the LF that ends it; a CR before that stays, which is white space in JSON. */
  readonly text: string;
  /** Counted from 1. */
  readonly line: number;
  /** Only of the last it may be false. */
  readonly isTerminated: boolean;
}

/** Lines are cut as bytes: a character may lie in two pieces of the file. */
async function* linesOf(path: string): AsyncGenerator<Line> {
  let line = 1;
  let begun: Buffer[] = [];
  const textOf = (rest: Buffer): string =>
    (begun.length === 0 ? rest : Buffer.concat([...begun, rest])).toString("utf8");
  for await (const piece of piecesOf(path)) {
    let start = 0;
    for (let end = piece.indexOf(lineEnd); end >= 0; end = piece.indexOf(lineEnd, start)) {
      yield { text: textOf(piece.subarray(start, end)), line: line++, isTerminated: true };
      begun = [];
      start = end + 1;
    }
    if (start < piece.length) begun.push(piece.subarray(start));
  }
  if (begun.length > 0) yield { text: textOf(Buffer.alloc(0)), line, isTerminated: false };
}

/** Throws `FileError`. */
async function* piecesOf(path: string): AsyncGenerator<Buffer> {
  try {
    yield* createReadStream(path, { highWaterMark: pieceBytes }) as AsyncIterable<Buffer>;
  } catch (cause) {
    throw fileError(`cannot read ${path}`, cause);
  }
}

/** Replaces `path` by these records in one step; they are asked for as they are written. Throws `FileError`. */
export async function writeJsonLines(path: string, values: Iterable<unknown>): Promise<void> {
  await writeFileAtomic(path, linePieces(values));
}

/** One line for each value, many in a piece. */
function* linePieces(values: Iterable<unknown>): Generator<Uint8Array> {
  let text = "";
  for (const value of values) {
    text += `${JSON.stringify(value)}\n`;
    if (text.length < pieceBytes) continue;
    yield Buffer.from(text);
    text = "";
  }
  if (text !== "") yield Buffer.from(text);
}

/** The whole text of a file. Throws `FileError` with advice. */
export async function readText(path: string): Promise<string> {
  try {
    return await readFile(path, "utf8");
  } catch (cause) {
    throw fileError(`cannot read ${path}`, cause);
  }
}

/** One JSON text checked by `schema`. Throws `DataFormatError` that names the place and the wrong key. */
export function parseRecord<T>(
  text: string,
  schema: ZodType<T>,
  place: { readonly file: string; readonly line?: number },
): T {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new DataFormatError(place.file, place.line, "expected one JSON object, got text that is not JSON", {
      cause,
    });
  }
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  const key = issue?.path.map(String).join(".") || "the record";
  throw new DataFormatError(place.file, place.line, `${key}: ${issue?.message ?? "not as expected"}`, {
    cause: parsed.error,
  });
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

async function withFile(
  path: string,
  flags: string,
  use: (handle: FileHandle) => Promise<unknown>,
): Promise<void> {
  try {
    const handle = await open(path, flags);
    try {
      await use(handle);
    } finally {
      await handle.close();
    }
  } catch (cause) {
    throw fileError(`cannot write ${path}`, cause);
  }
}
