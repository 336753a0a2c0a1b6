/**
 * Writes the parts of an index folder: passages one by one as they come, then the rows of the index by rising term.
 * Memory grows by 8 bytes a passage (the length of its line and the hash of its id), twice that where the arrays have just grown, and
 * by 6 to 12 more for the table of ids.
 */
import type { Passage } from "../corpus/passage.ts";
import { type PassageFields, passageLine } from "../corpus/passage-record.ts";
import { idHash, idTable } from "./index-folder-ids.ts";
import type { Manifest } from "./index-folder-manifest.ts";
import { GrowingArray } from "./lexical/growing-array.ts";
import type { MemoryPostings } from "./lexical/memory-postings.ts";
import type { IndexRow } from "./lexical/merge-segments.ts";
import type { Vocabulary } from "./lexical/vocabulary.ts";
import { bytesOf, PartWriter, writePart } from "./part-files.ts";

type Parts = Manifest["parts"];
const PASSAGES_FILE = "passages.jsonl";

/** Takes the passages of an index; the first `presentBytes` of their file are there already, from a build cut off. */
export class PassageWriter {
  readonly #folder: string;
  readonly #lines: PartWriter;
  readonly #lengths = new GrowingArray(Uint32Array);
  readonly #hashes = new GrowingArray(Uint32Array);

  constructor(folder: string, presentBytes = 0) {
    this.#folder = folder;
    this.#lines = new PartWriter(folder, PASSAGES_FILE, presentBytes);
  }

  get count(): number {
    return this.#lengths.length;
  }

  get bytes(): number {
    return this.#lines.bytes;
  }

  add(passage: Passage, fields?: PassageFields): void {
    this.#lengths.push(this.#lines.writeText(`${passageLine(passage, fields)}\n`));
    this.#hashes.push(idHash(passage.id));
  }

  /** Makes all passages so far durable; returns the SHA-256 of their lines. */
  sync(): string {
    return this.#lines.sync();
  }

  finish(): Pick<Parts, "passages" | "passageStarts" | "ids"> {
    const passages = this.#lines.finish();
    return {
      passages,
      passageStarts: writePart(this.#folder, "passages.f64", startPieces(this.#lengths)),
      ids: writePart(this.#folder, "ids.u32", [bytesOf(idTable(this.#hashes.written))]),
    };
  }

  close(): void {
    this.#lines.close();
  }
}

/** Running sums of the lengths, from 0 on, in pieces. */
function* startPieces(lengths: GrowingArray<Uint32Array>): Generator<Uint8Array> {
  const piece = new Float64Array(1 << 16);
  let start = 0;
  let filled = 0;
  for (let i = 0; i <= lengths.length; i++) {
    piece[filled++] = start;
    start += lengths.at(i);
    if (filled < piece.length && i < lengths.length) continue;
    yield bytesOf(piece.subarray(0, filled));
    filled = 0;
  }
}

/** Takes the rows of an index by rising term. */
export class RowWriter {
  readonly #vocabulary: PartWriter;
  readonly #vocabularyStarts: PartWriter;
  readonly #starts: PartWriter;
  readonly #bounds: PartWriter;
  readonly #postings: PartWriter;
  readonly #impacts: PartWriter;
  /** One number or two, on their way into a file. */
  readonly #lineStart = new Uint32Array(1);
  readonly #start = new Float64Array(1);
  readonly #bound = new Float32Array(2);
  #terms = 0;
  #entries = 0;

  constructor(folder: string) {
    this.#vocabulary = new PartWriter(folder, "vocabulary.txt");
    this.#vocabularyStarts = new PartWriter(folder, "vocabulary.u32");
    this.#starts = new PartWriter(folder, "starts.f64");
    this.#bounds = new PartWriter(folder, "bounds.f32");
    this.#postings = new PartWriter(folder, "postings.u32");
    this.#impacts = new PartWriter(folder, "impacts.f32");
  }

  add({ term, passages, impacts, least, greatest }: IndexRow): void {
    this.#writeStarts();
    this.#vocabulary.writeText(`${term}\n`);
    this.#bound[0] = least;
    this.#bound[1] = greatest;
    this.#bounds.writeArray(this.#bound);
    this.#postings.writeArray(passages);
    this.#impacts.writeArray(impacts);
    this.#terms++;
    this.#entries += passages.length;
  }

  /** Takes all rows at once, and no other. */
  addAll(vocabulary: Vocabulary, { starts, bounds, passages, impacts }: MemoryPostings): void {
    this.#terms = vocabulary.count;
    this.#entries = passages.length;
    this.#vocabulary.write(vocabulary.bytes);
    // The last start of each is written when all is done.
    this.#vocabularyStarts.writeArray(vocabulary.lineStarts.subarray(0, -1));
    this.#starts.writeArray(starts.subarray(0, -1));
    this.#bounds.writeArray(bounds);
    this.#postings.writeArray(passages);
    this.#impacts.writeArray(impacts);
  }

  finish(): {
    readonly parts: Omit<Parts, "passages" | "passageStarts" | "ids">;
    readonly counts: Omit<Manifest["counts"], "passages">;
  } {
    this.#writeStarts();
    return {
      parts: {
        vocabulary: this.#vocabulary.finish(),
        vocabularyStarts: this.#vocabularyStarts.finish(),
        starts: this.#starts.finish(),
        bounds: this.#bounds.finish(),
        postings: this.#postings.finish(),
        impacts: this.#impacts.finish(),
      },
      counts: { terms: this.#terms, entries: this.#entries },
    };
  }

  close(): void {
    for (const writer of [
      this.#vocabulary,
      this.#vocabularyStarts,
      this.#starts,
      this.#bounds,
      this.#postings,
      this.#impacts,
    ])
      writer.close();
  }

  #writeStarts(): void {
    this.#lineStart[0] = this.#vocabulary.bytes;
    this.#start[0] = this.#entries;
    this.#vocabularyStarts.writeArray(this.#lineStart);
    this.#starts.writeArray(this.#start);
  }
}

/** Bytes of all parts. */
export function totalBytes(parts: Parts): number {
  return Object.values(parts).reduce((sum, { bytes }) => sum + bytes, 0);
}
