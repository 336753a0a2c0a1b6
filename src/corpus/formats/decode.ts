/**
 * Bytes to text. A byte order mark tells UTF-8 or UTF-16 and wins over a declared encoding; without either, text is
 * UTF-8. Bytes that are no text of the encoding are an error, never replaced. No guessing from statistics.
 */
import { ConfigError, DataFormatError } from "../../errors.ts";
import type { ByteSource } from "./open-bytes.ts";

/** What to do about text that is not UTF-8, for the end of a message. */
const encodingAdvice = "convert the file to UTF-8, or declare its encoding (--encoding windows-1252)";

/** The encoding that a byte order mark at the start of `head` tells. */
export function encodingOfMark(head: Uint8Array): string | undefined {
  if (head[0] === 0xef && head[1] === 0xbb && head[2] === 0xbf) return "utf-8";
  if (head[0] === 0xff && head[1] === 0xfe) return "utf-16le";
  return head[0] === 0xfe && head[1] === 0xff ? "utf-16be" : undefined;
}

/** A decoder that throws `TypeError` for wrong bytes and takes a byte order mark off. Throws `ConfigError` for an unknown name. */
export function makeDecoder(encoding: string): TextDecoder {
  try {
    return new TextDecoder(encoding, { fatal: true });
  } catch (cause) {
    throw new ConfigError(
      `expected the name of a text encoding such as utf-8, windows-1252, utf-16le or gb18030, got ${JSON.stringify(encoding)}`,
      { cause, path: "encoding" },
    );
  }
}

/** A place in bytes: the file for messages and the encoding that the user declared. */
export interface TextContext {
  readonly path: string;
  readonly encoding?: string | undefined;
}

/** The text of a source, piece by piece. Throws `DataFormatError` with the line on which, or just after which, bytes are wrong. */
export async function* decodeText(bytes: ByteSource, context: TextContext): AsyncGenerator<string> {
  let decoder: TextDecoder | undefined;
  let line = 1;
  let encoding = "utf-8";
  const wrong = (cause: unknown) => new DataFormatError(context.path, line, wrongText(encoding), { cause });
  for await (const piece of bytes) {
    if (decoder === undefined) {
      encoding = encodingOfMark(piece) ?? context.encoding ?? "utf-8";
      decoder = makeDecoder(encoding);
    }
    try {
      const text = decoder.decode(piece, { stream: true });
      line += countLineEnds(text);
      yield text;
    } catch (cause) {
      if (!(cause instanceof TypeError)) throw cause;
      line += linesBeforeWrongBytes(piece, encoding);
      throw wrong(cause);
    }
  }
  try {
    yield decoder?.decode() ?? "";
  } catch (cause) {
    throw wrong(cause);
  }
}

/** The text of a whole file in memory. Throws `DataFormatError` for bytes that are none. */
export function decodeWhole(bytes: Uint8Array, { path, encoding }: TextContext): string {
  const name = encodingOfMark(bytes) ?? encoding ?? "utf-8";
  try {
    return makeDecoder(name).decode(bytes);
  } catch (cause) {
    if (!(cause instanceof TypeError)) throw cause;
    throw new DataFormatError(path, 1 + linesBeforeWrongBytes(bytes, name), wrongText(name), { cause });
  }
}

export function wrongText(encoding: string): string {
  const isUnicode = /^utf-?8$/i.test(encoding);
  return isUnicode
    ? `expected UTF-8 text, got other bytes; ${encodingAdvice}`
    : `expected ${encoding} text, got other bytes; declare the encoding it has (--encoding NAME, in a recipe data.reading.encoding)`;
}

/** How many line ends come before the first bytes that cannot be decoded; 0 for encodings of two bytes a character. */
function linesBeforeWrongBytes(bytes: Uint8Array, encoding: string): number {
  if (/^utf-?16/i.test(encoding)) return 0;
  let start = 0;
  for (let lines = 0; ; lines++) {
    const end = bytes.indexOf(10, start);
    try {
      makeDecoder(encoding).decode(bytes.subarray(start, end < 0 ? bytes.length : end), { stream: end < 0 });
    } catch {
      return lines;
    }
    if (end < 0) return lines;
    start = end + 1;
  }
}

function countLineEnds(text: string): number {
  let count = 0;
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) count++;
  return count;
}
