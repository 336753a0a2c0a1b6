/**
 * Lines of a text file, streamed: UTF-8, a byte order mark and CRLF tolerated, blank lines left out. JSON files,
 * which may hold any line end, are read whole by `readJsonFile`.
 */
import { createReadStream } from "node:fs";
import { readFile } from "node:fs/promises";
import { DataFormatError } from "../../errors.ts";
import { fileError } from "../../shared/files.ts";

export interface TextLine {
  /** Counted from 1, blank lines included. */
  readonly number: number;
  readonly text: string;
}

/** The lines of `path` that are not blank. Throws `FileError`, and `DataFormatError` for bytes that are not UTF-8. */
export async function* textLines(path: string): AsyncGenerator<TextLine> {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let number = 0;
  let rest = "";
  const decode = (bytes?: Uint8Array): string => {
    try {
      return bytes === undefined ? decoder.decode() : decoder.decode(bytes, { stream: true });
    } catch (cause) {
      const message = "expected UTF-8 text, got other bytes here or soon after; convert the file to UTF-8";
      throw new DataFormatError(path, number + 1, message, { cause });
    }
  };
  for await (const chunk of chunksOf(path)) {
    const pieces = (rest + decode(chunk)).split("\n");
    rest = pieces.pop() as string;
    for (const piece of pieces) {
      number++;
      if (piece.trim() !== "") yield { number, text: withoutReturn(piece) };
    }
  }
  rest += decode();
  if (rest.trim() !== "") yield { number: number + 1, text: withoutReturn(rest) };
}

async function* chunksOf(path: string): AsyncGenerator<Uint8Array> {
  try {
    yield* createReadStream(path, { highWaterMark: 1 << 18 }) as AsyncIterable<Buffer>;
  } catch (cause) {
    throw fileError(`cannot read ${path}`, cause);
  }
}

function withoutReturn(line: string): string {
  return line.endsWith("\r") ? line.slice(0, -1) : line;
}

/** The JSON value that the file holds. Throws `FileError` or `DataFormatError`. */
export async function readJsonFile(path: string): Promise<unknown> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (cause) {
    throw fileError(`cannot read ${path}`, cause);
  }
  try {
    return JSON.parse(text.replace(/^\ufeff/, "")) as unknown;
  } catch (cause) {
    throw new DataFormatError(path, undefined, `expected JSON: ${(cause as Error).message}`, { cause });
  }
}
