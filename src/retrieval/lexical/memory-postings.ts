/** The entries of an index as typed arrays in memory. */
import type { Formula } from "./bm25-options.ts";
import { boundsOf } from "./merge-segments.ts";
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
  /** Where these two lie, if kernels can add them in place. */
  readonly memory?: WebAssembly.Memory;
}

export function memoryPostings({ starts, bounds, passages, impacts, memory }: MemoryPostings): PostingStore {
  return {
    ...(memory && { memory }),
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

/** A segment that is the whole corpus as the entries of an index. */
export function segmentPostings(segment: Segment, formula: Formula): MemoryPostings {
  const { counts, passages } = segment;
  const starts = new Float64Array(counts.length + 1);
  const bounds = new Float32Array(2 * counts.length);
  const impacts = new Float32Array(passages.length);
  let from = 0;
  for (let term = 0; term < counts.length; term++) {
    const count = counts[term] as number;
    const to = from + count;
    formula.impacts(segment, { from, to, idf: formula.idf(count) }, impacts);
    const { least, greatest } = boundsOf(impacts, from, to);
    bounds[2 * term] = least;
    bounds[2 * term + 1] = greatest;
    starts[term + 1] = to;
    from = to;
  }
  return { starts, bounds, passages, impacts };
}
