/**
 * Ranks passages by sums of impacts. The corpus is gone through in windows whose sums stay in the processor's cache,
 * and the terms that cannot lift a passage above the k-th best so far are only added where others have brought a
 * passage up (MaxScore: Turtle and Flood 1995, in the windowed form of Lucene's bulk scorer).
 *
 * The result is that of adding up every entry in the order of the terms given, bit for bit: the order of addition
 * is changed only where no sum of the query can be rounded (`isOrderFree`), otherwise nothing is left out.
 */

import type { TermEntries } from "./term-entries.ts";
import { type Ranking, TopK } from "./top-k.ts";
import { floorOf, keepAbove, listAbove, offerListed, offerWindow, sortPlaces } from "./window-lists.ts";
import {
  addAll,
  addListed,
  addToFound,
  type Cursor,
  GROUP,
  listFirst,
  listLone,
  lookUp,
  makeWindow,
  type Window,
} from "./window-loops.ts";

/** Passages in a window at most; a multiple of `GROUP`. */
const WINDOW = 1 << 15;
/** When more than one passage in so many has an entry, going through all sums beats a list of those touched. */
const DENSE_SHARE = 3;
/** The floor is looked for among the first k times so many passages listed, those with the most influential terms. */
const FLOOR_PASSAGES = 6;
/** Looking for it costs about as much as adding so many entries for each of those passages. */
const FLOOR_COST = 4;
/** Looking a passage up among the entries of a term costs about as much as adding so many of them. */
const LOOKUP_COST = 3;
/** The same with the passages still to be sorted. */
const SORTED_LOOKUP_COST = 6;

/** Owns working memory of some 400 KiB and serves one query at a time. */
export class Ranker {
  readonly #passageCount: number;
  /** Passages in a window: windows are equally long, since a short one costs almost as much as a long one. */
  readonly #windowSize: number;
  readonly #window: Window;
  readonly #top = new TopK();
  /** For the search for floors. */
  #work = new Float64Array(0);

  /** `mostAtOnce` passages are in a window at most. */
  constructor(passageCount: number, mostAtOnce = WINDOW) {
    this.#passageCount = passageCount;
    const windows = Math.ceil(passageCount / mostAtOnce);
    this.#windowSize = Math.ceil(passageCount / windows / GROUP) * GROUP;
    this.#window = makeWindow(this.#windowSize);
  }

  /** The best `k` of the passages that hold a term, equal scores by position. */
  rank(terms: readonly TermEntries[], k: number): Ranking {
    const window = this.#window;
    const capacity = Math.min(k, this.#passageCount, countEntries(terms, 0, terms.length));
    this.#top.reset(capacity);
    if (this.#work.length < FLOOR_PASSAGES * capacity)
      this.#work = new Float64Array(FLOOR_PASSAGES * capacity);
    const canPrune = isOrderFree(terms);
    const cursors = cursorsOf(terms, canPrune);
    for (let start = 0; start < this.#passageCount; start = window.end) {
      window.start = start;
      window.end = Math.min(start + this.#windowSize, this.#passageCount);
      window.count = 0;
      if (!canPrune) this.#addEverything(cursors);
      else if (boundOf(cursors, cursors.length) <= this.#top.threshold) break;
      else this.#rankWindow(cursors, capacity);
      this.#top.settle();
    }
    return this.#top.take();
  }

  #addEverything(cursors: readonly Cursor[]): void {
    for (const cursor of cursors) addAll(cursor, this.#window);
    offerWindow(this.#window, this.#top, 0);
  }

  /**
   * Ranks the passages of the window. Terms are added by falling influence until those left cannot lift a passage
   * above the floor on their own: what the k-th best has for sure, from earlier windows or by the terms added so far.
   */
  #rankWindow(cursors: readonly Cursor[], k: number): void {
    const window = this.#window;
    const size = window.end - window.start;
    const share = size / this.#passageCount;
    let floor = this.#top.threshold;
    let lead = leadOf(cursors, floor);
    let left = cursors.length;
    if (left - lead === 1) {
      left = lead;
      listLone(cursors[lead] as Cursor, window, floor - boundOf(cursors, lead));
    }
    for (; left > lead; left--) {
      const rest = countEntries(cursors, lead, left) * share;
      const probed = Math.min(window.count, FLOOR_PASSAGES * k);
      if (probed >= k && rest > FLOOR_COST * probed) {
        floor = floorOf(window, { k, floor, count: probed, work: this.#work });
        lead = leadOf(cursors, floor);
        if (lead >= left) break;
      }
      if ((window.count + rest) * DENSE_SHARE > size) {
        this.#addDense(cursors, left, floor);
        return;
      }
      const cursor = cursors[left - 1] as Cursor;
      if (window.count === 0) listFirst(cursor, window);
      else addListed(cursor, window);
    }
    this.#addFollowers(cursors, left, floor);
    offerListed(window, this.#top, floor);
  }

  /** Ends a window by adding the leading ones of the first `left` terms without a list. */
  #addDense(cursors: readonly Cursor[], left: number, floor: number): void {
    const window = this.#window;
    const lead = leadOf(cursors, floor);
    for (let i = left - 1; i >= lead; i--) addAll(cursors[i] as Cursor, window);
    if (lead > 0) {
      listAbove(window, floor - boundOf(cursors, lead));
      this.#addFollowers(cursors, lead, floor);
      offerListed(window, this.#top, floor);
      window.sums.fill(0, 0, window.end - window.start);
    } else offerWindow(window, this.#top, floor);
  }

  /** Adds the first `left` terms to the passages listed, of which only those that may exceed the floor are kept. */
  #addFollowers(cursors: readonly Cursor[], left: number, floor: number): void {
    const window = this.#window;
    const share = (window.end - window.start) / this.#passageCount;
    if (left === 0) return;
    keepAbove(window, floor - boundOf(cursors, left));
    for (let i = left - 1; i >= 0 && window.count > 0; i--) {
      const cursor = cursors[i] as Cursor;
      const cost = window.count * (window.isSorted ? LOOKUP_COST : SORTED_LOOKUP_COST);
      if (cost > (cursor.to - cursor.from) * share) addToFound(cursor, window);
      else {
        sortPlaces(window);
        lookUp(cursor, window);
      }
      keepAbove(window, floor - boundOf(cursors, i));
    }
  }
}

/** The entries of the terms from `first` to `end` (exclusive). */
function countEntries(terms: readonly TermEntries[], first: number, end: number): number {
  let count = 0;
  for (let i = first; i < end; i++) {
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

/** The first term that lifts a passage above the floor, with those before it. */
function leadOf(cursors: readonly Cursor[], floor: number): number {
  let lead = 0;
  while (lead < cursors.length && (cursors[lead] as Cursor).bound <= floor) lead++;
  return lead;
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
