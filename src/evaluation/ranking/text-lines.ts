/**
 * Lines of a text file, streamed: UTF-8 or as a byte order mark says, packed or not (gzip, zstd, bzip2), any line ends,
 * blank lines left out. JSON files, whose line ends mean nothing, are read whole by `readJsonFile`.
 */
import { openBytes } from "../../corpus/formats/open-bytes.ts";
import { lineBatches } from "../../corpus/formats/text-lines.ts";
import { DataFormatError } from "../../errors.ts";

export interface TextLine {
  /** Counted from 1, blank lines included. */
  readonly number: number;
  readonly text: string;
}

/** The lines of `path` that are not blank. Throws `FileError`, and `DataFormatError` for bytes that are no text. */
export async function* textLines(path: string): AsyncGenerator<TextLine> {
  for await (const { first, lines } of lineBatches(openBytes(path), { path }))
    for (const [i, text] of lines.entries()) {
      if (typeof text !== "string") throw text;
      if (text.trim() !== "") yield { number: first + i, text };
    }
}

/** The JSON value that the file holds. Throws `FileError` or `DataFormatError`. */
export async function readJsonFile(path: string): Promise<unknown> {
  const lines: string[] = [];
  for await (const { text } of textLines(path)) lines.push(text);
  try {
    return JSON.parse(lines.join("\n")) as unknown;
  } catch (cause) {
    throw new DataFormatError(path, undefined, `expected JSON: ${(cause as Error).message}`, { cause });
  }
}
