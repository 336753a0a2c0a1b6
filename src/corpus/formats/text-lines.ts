/**
 * Lines of text from bytes, many at a time. Line ends may be LF, CRLF or CR, mixed. In UTF-8 a line of wrong bytes
 * is an error of that line alone; other encodings are decoded as one stream, where wrong bytes end the reading.
 */
import { isUtf8 } from "node:buffer";
import { DataFormatError } from "../../errors.ts";
import { decodeText, encodingOfMark, type TextContext, wrongText } from "./decode.ts";
import type { ByteSource } from "./open-bytes.ts";

/** Lines in order without their ends; `first` is the number of the first, counted from 1. */
export interface LineBatch {
  readonly first: number;
  readonly lines: readonly Line[];
}

type Line = string | DataFormatError;

/** Longer lines are no records but another format; a text of Node holds half a gigabyte. */
const longestLine = 1 << 28;
const LF = 10;
const CR = 13;

/** The lines of a source. Throws `DataFormatError` for a line of over 256 MiB. */
export async function* lineBatches(bytes: ByteSource, context: TextContext): AsyncGenerator<LineBatch> {
  let first = 1;
  const { encoding = "utf-8" } = context;
  for await (const block of wholeLines(bytes, context)) {
    if (block.isOther) {
      for await (const lines of otherLines(block.rest, { ...context, encoding })) {
        yield { first, lines };
        first += lines.length;
      }
      return;
    }
    const lines = decodeLines(block.bytes, { path: context.path, first });
    if (first === 1 && typeof lines[0] === "string") lines[0] = lines[0].replace(/^\ufeff/, "");
    yield { first, lines };
    first += lines.length;
  }
}

type Block =
  | { readonly isOther: false; readonly bytes: Uint8Array }
  | { readonly isOther: true; readonly rest: ByteSource };

/** Cuts UTF-8 after line ends; what is not UTF-8 by its mark or by declaration is handed on whole. */
async function* wholeLines(source: ByteSource, { path, encoding }: TextContext): AsyncGenerator<Block> {
  let pieces: Uint8Array[] = [];
  let length = 0;
  let isStart = true;
  const iterator = source[Symbol.asyncIterator]();
  for (let next = await iterator.next(); !next.done; next = await iterator.next()) {
    const piece = next.value;
    if (isStart && !isUtf8Source(piece, encoding)) {
      yield { isOther: true, rest: chained(piece, iterator) };
      return;
    }
    isStart = false;
    const cut = endOfLastLine(piece);
    if (cut > 0) {
      yield { isOther: false, bytes: join(pieces, piece.subarray(0, cut)) };
      pieces = [];
      length = 0;
    }
    if (cut < piece.length) pieces.push(piece.subarray(cut));
    length += piece.length - cut;
    if (length > longestLine)
      throw new DataFormatError(path, undefined, "expected lines of at most 256 MiB, got a longer one");
  }
  if (pieces.length > 0) yield { isOther: false, bytes: join(pieces) };
}

function isUtf8Source(head: Uint8Array, declared = "utf-8"): boolean {
  return /^utf-?8$/i.test(encodingOfMark(head) ?? declared);
}

async function* chained(first: Uint8Array, rest: AsyncIterator<Uint8Array>): AsyncGenerator<Uint8Array> {
  yield first;
  for (let next = await rest.next(); !next.done; next = await rest.next()) yield next.value;
}

/** One after the last line end; a CR as last byte may be half of a CRLF and waits for the next piece. */
function endOfLastLine(piece: Uint8Array): number {
  const lf = piece.lastIndexOf(LF);
  const cr = piece.length < 2 ? -1 : piece.lastIndexOf(CR, piece.length - 2);
  // A CR right before the LF of the next byte belongs to it, and the LF is then the later one.
  return Math.max(lf, cr) + 1;
}

function join(pieces: readonly Uint8Array[], last?: Uint8Array): Uint8Array {
  if (pieces.length === 0 && last) return last;
  return Buffer.concat(last ? [...pieces, last] : pieces);
}

/**
 * The lines of whole UTF-8 lines. Each is made a text by itself: most are ASCII then, and cheaper to read than pieces of
 * one long text that a single other character has doubled.
 */
function decodeLines(
  block: Uint8Array,
  { path, first }: { readonly path: string; readonly first: number },
): Line[] {
  const bytes = Buffer.from(block.buffer, block.byteOffset, block.byteLength);
  const isValid = isUtf8(bytes);
  const hasReturns = bytes.includes(CR);
  const lines: Line[] = [];
  for (let start = 0; start < bytes.length; ) {
    const found = bytes.indexOf(LF, start);
    const end = found < 0 ? bytes.length : found;
    const line = bytes.subarray(start, end);
    if (!isValid && !isUtf8(line))
      lines.push(new DataFormatError(path, first + lines.length, wrongText("utf-8")));
    else if (hasReturns) for (const part of splitLines(line.toString())) lines.push(part);
    else lines.push(bytes.toString("utf8", start, end));
    start = end + 1;
  }
  return lines;
}

/** The lines of a text; an end at its end begins no further line. */
function splitLines(text: string): string[] {
  const lines = text.split(/\r\n|\n|\r/);
  if (lines.length > 1 && lines.at(-1) === "") lines.pop();
  return lines;
}

async function* otherLines(bytes: ByteSource, context: TextContext): AsyncGenerator<string[]> {
  let rest = "";
  for await (const piece of decodeText(bytes, context)) {
    rest += piece;
    const cut = Math.max(rest.lastIndexOf("\n"), rest.lastIndexOf("\r", rest.length - 2)) + 1;
    if (cut === 0) continue;
    yield splitLines(rest.slice(0, cut));
    rest = rest.slice(cut);
    if (rest.length > longestLine)
      throw new DataFormatError(
        context.path,
        undefined,
        "expected lines of at most 256 MiB, got a longer one",
      );
  }
  if (rest !== "") yield splitLines(rest);
}
