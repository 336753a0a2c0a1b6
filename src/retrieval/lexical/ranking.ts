/**
 * Ranks passages by sums of impacts. The corpus is gone through in windows whose sums stay in the processor's cache,
 * and the terms that cannot lift a passage above the k-th best so far are only added where others have brought a
 * passage up (MaxScore: Turtle and Flood 1995, in the windowed form of Lucene's bulk scorer).
 *
 * The result is that of adding up every entry in the order of the terms given, bit for bit: the order of addition
 * is changed only where no sum of the query can be rounded (`isOrderFree`), otherwise nothing is left out.
 */

import { type Ranking, TopHeap } from "./top-heap.ts";
import {
  addAll,
  addListed,
  addToFound,
  floorOf,
  keepAbove,
  lookUp,
  offerListed,
  offerWindow,
  sortPlaces,
} from "./window-loops.ts";

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

/** A term and how far the ranking has come in its entries. */
export interface Cursor extends TermEntries {
  /** The first entry that is not behind. */
  at: number;
  /** The most that this term and those before it in the order add to one passage. */
  bound: number;
}

/** The sums of a window of passages. */
export interface Window {
  start: number;
  end: number;
  /** By place in the window, which is the position less `start`; all 0 between windows. */
  readonly sums: Float64Array;
  /** Places of passages that have a sum; the first `count` are in use. */
  readonly places: Uint32Array;
  count: number;
}

/** Passages in a window, at most: their sums take 512 KiB. */
const WINDOW = 1 << 16;
/** When more than one passage in so many has an entry, going through all sums beats a list of those touched. */
const DENSE_SHARE = 3;
/** Finding the floor costs about as much as adding so many entries for each passage listed. */
const FLOOR_COST = 2;
/** A look-up costs about as much as adding so many entries. */
const LOOKUP_COST = 16;

/** Owns working memory of some 800 KiB and serves one query at a time. */
export class Ranker {
  readonly #passageCount: number;
  readonly #window: Window;
  readonly #heap = new TopHeap(16);

  constructor(passageCount: number) {
    this.#passageCount = passageCount;
    const size = Math.min(WINDOW, passageCount);
    this.#window = {
      start: 0,
      end: 0,
      sums: new Float64Array(size),
      places: new Uint32Array(size),
      count: 0,
    };
  }

  /** The best `k` of the passages that hold a term, equal scores by position. */
  rank(terms: readonly TermEntries[], k: number): Ranking {
    const window = this.#window;
    const capacity = Math.min(k, this.#passageCount, countEntries(terms, terms.length));
    this.#heap.reset(capacity);
    const canPrune = isOrderFree(terms);
    const cursors = cursorsOf(terms, canPrune);
    for (let start = 0; start < this.#passageCount; start = window.end) {
      window.start = start;
      window.end = Math.min(start + WINDOW, this.#passageCount);
      window.count = 0;
      if (!canPrune) this.#addEverything(cursors);
      else if (boundOf(cursors, cursors.length) <= this.#heap.threshold) break;
      else this.#rankWindow(cursors, capacity);
    }
    return this.#heap.take();
  }

  #addEverything(cursors: readonly Cursor[]): void {
    for (const cursor of cursors) addAll(cursor, this.#window);
    offerWindow(this.#window, this.#heap);
  }

  /**
   * Ranks the passages of the window. Terms are added by falling influence until those left cannot lift a passage
   * above the floor on their own: what the k-th best has for sure, from earlier windows or by the terms added so far.
   */
  #rankWindow(cursors: readonly Cursor[], k: number): void {
    const window = this.#window;
    const share = (window.end - window.start) / this.#passageCount;
    let floor = this.#heap.threshold;
    let left = cursors.length;
    for (; left > 0 && boundOf(cursors, left) > floor; left--) {
      const remaining = countEntries(cursors, left) * share;
      if (window.count >= k && remaining > FLOOR_COST * window.count) {
        floor = Math.max(floor, floorOf(window, k));
        if (boundOf(cursors, left) <= floor) break;
      }
      if ((window.count + remaining) * DENSE_SHARE > window.end - window.start) {
        this.#addRest(cursors, left);
        return;
      }
      addListed(cursors[left - 1] as Cursor, window);
    }
    if (left > 0) this.#addFollowers(cursors, left, floor);
    offerListed(window, this.#heap);
  }

  /** Adds the first `left` terms without a list, and offers all passages. */
  #addRest(cursors: readonly Cursor[], left: number): void {
    for (let i = left - 1; i >= 0; i--) addAll(cursors[i] as Cursor, this.#window);
    offerWindow(this.#window, this.#heap);
  }

  /** Adds the first `left` terms to the passages listed, of which only those that may exceed the floor are kept. */
  #addFollowers(cursors: readonly Cursor[], left: number, floor: number): void {
    const window = this.#window;
    const share = (window.end - window.start) / this.#passageCount;
    keepAbove(window, floor - boundOf(cursors, left));
    let isSorted = false;
    for (let i = left - 1; i >= 0 && window.count > 0; i--) {
      const cursor = cursors[i] as Cursor;
      if (window.count * LOOKUP_COST > (cursor.to - cursor.from) * share) addToFound(cursor, window);
      else {
        if (!isSorted) sortPlaces(window);
        isSorted = true;
        lookUp(cursor, window);
      }
      keepAbove(window, floor - boundOf(cursors, i));
    }
  }
}

/** The entries of the first `length` terms. */
function countEntries(terms: readonly TermEntries[], length: number): number {
  let count = 0;
  for (let i = 0; i < length; i++) {
    const { from, to } = terms[i] as TermEntries;
    count += to - from;
  }
  return count;
}

/** The terms by rising influence when the order is free, else as they are. */
function cursorsOf(terms: readonly TermEntries[], canSort: boolean): Cursor[] {
  const cursors = terms.map(
    ({ passages, impacts, from, to, weight, least, greatest }): Cursor => ({
      passages,
      impacts,
      from,
      to,
      weight,
      least,
      greatest,
      at: from,
      bound: 0,
    }),
  );
  if (canSort) cursors.sort((a, b) => a.weight * a.greatest - b.weight * b.greatest);
  let bound = 0;
  for (const cursor of cursors) {
    bound += cursor.weight * cursor.greatest;
    cursor.bound = bound;
  }
  return cursors;
}

/** The most that the first `length` terms add to one passage. */
function boundOf(cursors: readonly Cursor[], length: number): number {
  return length === 0 ? 0 : (cursors[length - 1] as Cursor).bound;
}

/**
 * Whether the sums of the query are exact in any order: impacts are 32-bit floats, so with whole weights every
 * partial sum is a multiple of the smallest unit in the last place, and exact while it stays below 2^53 of them.
 */
function isOrderFree(terms: readonly TermEntries[]): boolean {
  let most = 0;
  let least = Number.POSITIVE_INFINITY;
  for (const term of terms) {
    if (!Number.isInteger(term.weight)) return false;
    most += term.weight * term.greatest;
    if (term.least < least) least = term.least;
  }
  // A 32-bit float is a multiple of a power of two that exceeds 2^-24 of it.
  return most < least * 2 ** (53 - 24);
}
