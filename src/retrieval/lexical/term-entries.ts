/** The entries of a term, as the ranking takes them, and the store of all of an index, in memory or on disk. */

/** Entries of one query term: rows of typed arrays. */
export interface TermEntries {
  /** Positions of passages, ascending. */
  readonly passages: Uint32Array;
  /** Above 0. */
  readonly impacts: Float32Array;
  readonly from: number;
  readonly to: number;
  /** How much the term counts in the query; above 0. */
  readonly weight: number;
  /** Bounds of the impacts from `from` to `to`. */
  readonly least: number;
  readonly greatest: number;
}

/** The entries of the terms of an index, wherever they are kept. */
export interface PostingStore {
  /** Number of entries in all. */
  readonly count: number;
  /** Where the entries lie, if that is where kernels can add them in place (`sum-kernel.ts`). */
  readonly memory?: WebAssembly.Memory;
  /** The entries of the term with a number from 0 on, for a query in which it counts `weight`. */
  entriesOf(term: number, weight: number): TermEntries;
}
