/**
 * Segments of a corpus to one index: rows of equal terms are joined in the order of the segments, and frequencies
 * become impacts, which need the number of passages, their mean length and how many hold the term. Rows are passed
 * on one by one, so that neither the segments nor the index need fit into memory.
 */
import type { Entries, Formula } from "./bm25-options.ts";

/** A segment that is read row by row, in the order of its terms. */
export interface SegmentRows {
  /** The term of the row at hand; undefined after the last. */
  readonly term: string | undefined;
  /** Number of its entries. */
  readonly count: number;
  /** Its entries; valid until the next call. */
  entries(): Entries;
  next(): void;
}

/** A row of the index; the arrays are valid until the next row. */
export interface IndexRow {
  readonly term: string;
  readonly passages: Uint32Array;
  readonly impacts: Float32Array;
  /** Bounds of the impacts. */
  readonly least: number;
  readonly greatest: number;
}

/** The rows of the merged index by rising term. */
export function* mergeSegments(segments: readonly SegmentRows[], formula: Formula): Generator<IndexRow> {
  const space = new RowSpace();
  for (;;) {
    const term = leastTerm(segments);
    if (term === undefined) return;
    const holders = segments.filter((segment) => segment.term === term);
    const total = holders.reduce((sum, { count }) => sum + count, 0);
    const idf = formula.idf(total);
    const { passages, impacts } = space.ofSize(total);
    let at = 0;
    for (const segment of holders) {
      const entries = segment.entries();
      const { count } = segment;
      passages.set(entries.passages, at);
      formula.impacts(entries, { from: 0, to: count, idf }, impacts.subarray(at, at + count));
      at += count;
      segment.next();
    }
    yield { term, passages, impacts, ...boundsOf(impacts, 0, total) };
  }
}

function leastTerm(segments: readonly SegmentRows[]): string | undefined {
  let least: string | undefined;
  for (const { term } of segments)
    if (term !== undefined && (least === undefined || term < least)) least = term;
  return least;
}

/** The memory of a row, enlarged when a longer one comes. */
class RowSpace {
  #passages = new Uint32Array(1024);
  #impacts = new Float32Array(1024);

  ofSize(size: number): { readonly passages: Uint32Array; readonly impacts: Float32Array } {
    if (size > this.#passages.length) {
      this.#passages = new Uint32Array(size * 2);
      this.#impacts = new Float32Array(size * 2);
    }
    return { passages: this.#passages.subarray(0, size), impacts: this.#impacts.subarray(0, size) };
  }
}

/** The least and the greatest of the impacts from `from` to `to`. */
export function boundsOf(
  impacts: Float32Array,
  from: number,
  to: number,
): { readonly least: number; readonly greatest: number } {
  let least = Number.POSITIVE_INFINITY;
  let greatest = 0;
  for (let i = from; i < to; i++) {
    const impact = impacts[i] as number;
    if (impact < least) least = impact;
    if (impact > greatest) greatest = impact;
  }
  return { least, greatest };
}
