/** The entries of terms read from disk; those used last are kept, up to a number of bytes. */
import type { PartFile } from "./part-files.ts";

interface CachedEntries {
  readonly passages: Uint32Array;
  readonly impacts: Float32Array;
}

const BYTES_PER_ENTRY = 8;

export class PostingCache {
  readonly #postings: PartFile;
  readonly #impacts: PartFile;
  readonly #mostBytes: number;
  /** By term; the one used last is the last. */
  readonly #kept = new Map<number, CachedEntries>();
  #bytes = 0;

  constructor(postings: PartFile, impacts: PartFile, mostBytes: number) {
    this.#postings = postings;
    this.#impacts = impacts;
    this.#mostBytes = mostBytes;
  }

  /** The entries of `term`, which lie from `from` to `to` (exclusive) in the files. */
  entries(term: number, from: number, to: number): CachedEntries {
    const known = this.#kept.get(term);
    if (known !== undefined) {
      this.#kept.delete(term);
      this.#kept.set(term, known);
      return known;
    }
    const entries = { passages: new Uint32Array(to - from), impacts: new Float32Array(to - from) };
    this.#postings.read(new Uint8Array(entries.passages.buffer), from * 4);
    this.#impacts.read(new Uint8Array(entries.impacts.buffer), from * 4);
    this.#keep(term, entries);
    return entries;
  }

  #keep(term: number, entries: CachedEntries): void {
    const bytes = entries.passages.length * BYTES_PER_ENTRY;
    if (bytes > this.#mostBytes / 4) return;
    this.#kept.set(term, entries);
    this.#bytes += bytes;
    for (const [oldest, { passages }] of this.#kept) {
      if (this.#bytes <= this.#mostBytes) break;
      this.#kept.delete(oldest);
      this.#bytes -= passages.length * BYTES_PER_ENTRY;
    }
  }
}
