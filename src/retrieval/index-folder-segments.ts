/**
 * Segments of an unfinished index on disk: written when they are full, read row by row for the merge, with memory of
 * some megabytes each.
 */
import { StringDecoder } from "node:string_decoder";
import { z } from "zod";
import type { SegmentRows } from "./lexical/merge-segments.ts";
import type { Segment } from "./lexical/postings.ts";
import {
  bytesOf,
  linePieces,
  type PartArray,
  PartFile,
  partSchema,
  readCheckedPart,
  writePart,
} from "./part-files.ts";

export const segmentPartsSchema = z.strictObject({
  terms: partSchema,
  counts: partSchema,
  passages: partSchema,
  frequencies: partSchema,
  lengths: partSchema,
});
export type SegmentParts = z.output<typeof segmentPartsSchema>;

/** Writes a segment under a number of its own and makes it durable. Throws `FileError`. */
export function writeSegment(folder: string, number: number, segment: Segment): SegmentParts {
  const name = (ending: string): string => `segment-${String(number).padStart(5, "0")}.${ending}`;
  return {
    terms: writePart(folder, name("terms.txt"), linePieces(segment.terms)),
    counts: writePart(folder, name("counts.u32"), [bytesOf(segment.counts)]),
    passages: writePart(folder, name("passages.u32"), [bytesOf(segment.passages)]),
    frequencies: writePart(folder, name("frequencies.u16"), [bytesOf(segment.frequencies)]),
    lengths: writePart(folder, name("lengths.u32"), [bytesOf(segment.lengths)]),
  };
}

/** The lengths of the passages of all segments, in order. */
export function readLengths(folder: string, segments: readonly SegmentParts[]): Uint32Array {
  const total = segments.reduce((sum, { lengths }) => sum + lengths.bytes, 0);
  const all = new Uint32Array(total / Uint32Array.BYTES_PER_ELEMENT);
  let at = 0;
  for (const { lengths } of segments) {
    const own = new Uint32Array(readCheckedPart(folder, lengths));
    all.set(own, at);
    at += own.length;
  }
  return all;
}

/** A segment that is read row by row; to be closed. */
export interface OpenSegment extends SegmentRows {
  close(): void;
}

export function openSegment(folder: string, parts: SegmentParts): OpenSegment {
  const files = [parts.terms, parts.counts, parts.passages, parts.frequencies].map(
    (part) => new PartFile(folder, part),
  ) as [PartFile, PartFile, PartFile, PartFile];
  const terms = new LineReader(files[0]);
  const counts = new ArrayReader(files[1], new Uint32Array(1 << 12));
  const passages = new ArrayReader(files[2], new Uint32Array(1 << 15));
  const frequencies = new ArrayReader(files[3], new Uint16Array(1 << 15));
  let term = terms.next();
  let count = term === undefined ? 0 : (counts.take(1)[0] as number);
  return {
    get term() {
      return term;
    },
    get count() {
      return count;
    },
    entries: () => ({ passages: passages.take(count), frequencies: frequencies.take(count) }),
    next: () => {
      term = terms.next();
      count = term === undefined ? 0 : (counts.take(1)[0] as number);
    },
    close: () => {
      for (const file of files) file.close();
    },
  };
}

/** Reads numbers from the start of a file to its end. */
class ArrayReader<T extends PartArray> {
  readonly #file: PartFile;
  #buffer: T;
  /** What is read and not taken yet. */
  #from = 0;
  #to = 0;
  #position = 0;

  constructor(file: PartFile, buffer: T) {
    this.#file = file;
    this.#buffer = buffer;
  }

  /** The next `count` numbers; valid until the next call. */
  take(count: number): T {
    if (this.#to - this.#from < count) this.#fill(count);
    this.#from += count;
    return this.#buffer.subarray(this.#from - count, this.#from) as T;
  }

  #fill(count: number): void {
    const rest = this.#buffer.subarray(this.#from, this.#to);
    if (count > this.#buffer.length) {
      const Type = this.#buffer.constructor as new (length: number) => T;
      this.#buffer = new Type(count * 2);
    }
    this.#buffer.set(rest);
    const size = this.#buffer.BYTES_PER_ELEMENT;
    const room = (this.#buffer.length - rest.length) * size;
    const bytes = Math.min(room, this.#file.bytes - this.#position);
    this.#file.read(
      new Uint8Array(this.#buffer.buffer, this.#buffer.byteOffset + rest.length * size, bytes),
      this.#position,
    );
    this.#position += bytes;
    this.#from = 0;
    this.#to = rest.length + bytes / size;
  }
}

/** Reads lines from the start of a file to its end. */
class LineReader {
  readonly #file: PartFile;
  readonly #decoder = new StringDecoder("utf8");
  #lines: string[] = [];
  #next = 0;
  #rest = "";
  #position = 0;

  constructor(file: PartFile) {
    this.#file = file;
  }

  next(): string | undefined {
    while (this.#next === this.#lines.length) if (!this.#fill()) return undefined;
    return this.#lines[this.#next++];
  }

  #fill(): boolean {
    const bytes = Buffer.alloc(Math.min(1 << 16, this.#file.bytes - this.#position));
    if (bytes.length === 0) return false;
    this.#file.read(bytes, this.#position);
    this.#position += bytes.length;
    const lines = (this.#rest + this.#decoder.write(bytes)).split("\n");
    this.#rest = lines.pop() as string;
    this.#lines = lines;
    this.#next = 0;
    return true;
  }
}
