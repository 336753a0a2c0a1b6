/** The entries of an index as typed arrays in memory, and a segment in memory row by row. */
import type { IndexRow, SegmentRows } from "./merge-segments.ts";
import type { Segment } from "./postings.ts";
import type { PostingStore } from "./term-entries.ts";

/** Rows are terms: the entries of term `t` are `starts[t]` to `starts[t + 1]` (exclusive). */
export interface MemoryPostings {
  /** (terms + 1) */
  readonly starts: Float64Array;
  /** (terms, 2) The least and the greatest impact of each term. */
  readonly bounds: Float32Array;
  /** (entries) Positions of passages, ascending within a term. */
  readonly passages: Uint32Array;
  /** (entries) */
  readonly impacts: Float32Array;
}

export function memoryPostings({ starts, bounds, passages, impacts }: MemoryPostings): PostingStore {
  return {
    count: passages.length,
    entriesOf: (term, weight) => ({
      passages,
      impacts,
      from: starts[term] as number,
      to: starts[term + 1] as number,
      weight,
      least: bounds[2 * term] as number,
      greatest: bounds[2 * term + 1] as number,
    }),
  };
}

/** Puts the rows of a merge one after the other. */
export class PostingsCollector {
  readonly postings: MemoryPostings;
  #terms = 0;
  #entries = 0;

  constructor(termCount: number, entryCount: number) {
    this.postings = {
      starts: new Float64Array(termCount + 1),
      bounds: new Float32Array(2 * termCount),
      passages: new Uint32Array(entryCount),
      impacts: new Float32Array(entryCount),
    };
  }

  add({ passages, impacts, least, greatest }: IndexRow): void {
    this.postings.passages.set(passages, this.#entries);
    this.postings.impacts.set(impacts, this.#entries);
    this.postings.bounds[2 * this.#terms] = least;
    this.postings.bounds[2 * this.#terms + 1] = greatest;
    this.#entries += passages.length;
    this.#terms++;
    this.postings.starts[this.#terms] = this.#entries;
  }
}

/** A segment in memory for the merge. */
export function segmentRows(segment: Segment): SegmentRows {
  let row = 0;
  let from = 0;
  return {
    get term() {
      return segment.terms[row];
    },
    get count() {
      return segment.counts[row] as number;
    },
    entries: () => {
      const to = from + (segment.counts[row] as number);
      return {
        passages: segment.passages.subarray(from, to),
        frequencies: segment.frequencies.subarray(from, to),
      };
    },
    next: () => {
      from += segment.counts[row] as number;
      row++;
    },
  };
}
