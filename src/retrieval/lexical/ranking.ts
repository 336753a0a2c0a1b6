/**
 * Ranks passages by sums of impacts, window by window of the corpus, so that the sums stay in the processor's cache:
 * the entries of all terms are added, then the sums are gone through once (`sum-kernel.ts`). What the k-th best has for
 * sure is known before, from the passages of one term, so that few sums are looked at closely.
 *
 * Entries are added in the order of the terms given and nothing is left out. At the speed of these loops pruning does not pay:
 * block-max pruning and MaxScore took longer, since they read memory in leaps and branch on data.
 */
import { nthLargest } from "./select.ts";
import { GROUP, SumKernel, WINDOW } from "./sum-kernel.ts";
import type { TermEntries } from "./term-entries.ts";
import { type Ranking, TopK } from "./top-k.ts";

/** The floor is looked for among the first k times so many passages of a term. */
const FLOOR_PASSAGES = 4;

interface Window {
  readonly start: number;
  /** Exclusive. */
  readonly end: number;
  readonly k: number;
}

/** A term and how far the ranking has come in its entries. */
interface Cursor {
  readonly entries: TermEntries;
  /** The entries of the window at hand. */
  from: number;
  to: number;
}

/** Serves one query at a time. */
export class Ranker {
  readonly #passageCount: number;
  /** Passages in a window: windows are equally long, since a short one costs almost as much as a long one. */
  readonly #windowSize: number;
  readonly #kernel: SumKernel;
  readonly #top = new TopK();
  /** For the search for floors. */
  #work = new Float64Array(0);

  /** `mostAtOnce` passages are in a window at most. */
  constructor(passageCount: number, { kernel = new SumKernel(), mostAtOnce = WINDOW } = {}) {
    this.#passageCount = passageCount;
    const windows = Math.ceil(passageCount / mostAtOnce);
    this.#windowSize = Math.ceil(passageCount / windows / GROUP) * GROUP;
    this.#kernel = kernel;
  }

  /** The best `k` of the passages that hold a term, equal scores by position. */
  rank(terms: readonly TermEntries[], k: number): Ranking {
    const entries = terms.reduce((sum, { from, to }) => sum + to - from, 0);
    const capacity = Math.min(k, this.#passageCount, entries);
    this.#top.reset(capacity);
    if (capacity === 0) return this.#top.take();
    if (this.#work.length < FLOOR_PASSAGES * capacity)
      this.#work = new Float64Array(FLOOR_PASSAGES * capacity);
    const cursors = terms.map((term): Cursor => ({ entries: term, from: term.from, to: term.from }));
    for (let start = 0; start < this.#passageCount; start += this.#windowSize) {
      const end = Math.min(start + this.#windowSize, this.#passageCount);
      this.#rankWindow(cursors, { start, end, k: capacity });
    }
    return this.#top.take();
  }

  #rankWindow(cursors: readonly Cursor[], window: Window): void {
    const { start, end } = window;
    const isLast = end === this.#passageCount;
    for (const cursor of cursors) {
      const { passages, impacts, to, weight } = cursor.entries;
      cursor.from = cursor.to;
      cursor.to = isLast ? to : firstFrom(passages, end, cursor);
      if (cursor.to > cursor.from)
        this.#kernel.add({ passages, impacts, from: cursor.from, to: cursor.to, weight }, start);
    }
    const found = this.#kernel.find(end - start, this.#floor(cursors, window));
    const { places, scores } = this.#kernel;
    const top = this.#top;
    for (let i = 0; i < found; i++) {
      const score = scores[i] as number;
      if (score >= top.threshold) top.offer(start + (places[i] as number), score);
    }
    top.settle();
  }

  /** What the k-th best has at least: from earlier windows, or from the passages of the most influential term that has k. */
  #floor(cursors: readonly Cursor[], { start, k }: Window): number {
    let best: Cursor | undefined;
    for (const cursor of cursors)
      if (cursor.to - cursor.from >= k && (best === undefined || influence(cursor) > influence(best)))
        best = cursor;
    const known = Math.max(this.#top.threshold, Number.MIN_VALUE);
    if (best === undefined) return known;
    const count = Math.min(best.to - best.from, FLOOR_PASSAGES * k);
    const { passages } = best.entries;
    gather(this.#kernel.sums, { passages, from: best.from, count, start }, this.#work);
    return Math.max(known, nthLargest(this.#work, count, k));
  }
}

function influence({ entries: { weight, greatest } }: Cursor): number {
  return weight * greatest;
}

interface Gathered {
  readonly passages: Uint32Array;
  readonly from: number;
  readonly count: number;
  /** The first passage of the window. */
  readonly start: number;
}

/** Writes the sums of `count` passages to the start of `target`. */
function gather(sums: Float64Array, { passages, from, count, start }: Gathered, target: Float64Array): void {
  for (let i = 0; i < count; i++) target[i] = sums[(passages[from + i] as number) - start] as number;
}

/** The first entry from the cursor on whose passage is not before `passage`. */
function firstFrom(passages: Uint32Array, passage: number, { from, entries: { to } }: Cursor): number {
  let low = from;
  let high = to;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((passages[middle] as number) < passage) low = middle + 1;
    else high = middle;
  }
  return low;
}
