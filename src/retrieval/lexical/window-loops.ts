/**
 * The inner loops of the ranking, each a small function of its own, since V8 optimises those far better than one
 * large body. They work on one window of the corpus; cursors stop at its end.
 */
import type { TermEntries } from "./term-entries.ts";

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
  /** By place in the window, which is the position less `start`; all 0 between windows and behind the end. */
  readonly sums: Float64Array;
  /** Places of passages that have a sum; the first `count` are in use. */
  readonly places: Uint32Array;
  count: number;
  /** Whether those are in rising order. */
  isSorted: boolean;
  /** A bit for each place, for sorting; all 0 otherwise. */
  readonly bits: Int32Array;
}

/** A window for at most `size` passages, a multiple of `GROUP`. */
export function makeWindow(size: number): Window {
  return {
    start: 0,
    end: 0,
    sums: new Float64Array(size),
    places: new Uint32Array(size),
    count: 0,
    isSorted: true,
    bits: new Int32Array(Math.ceil(size / 32)),
  };
}

/** The size of a window is a multiple of this. */
export const GROUP = 4;

/** Adds the entries of a term. */
export function addAll(cursor: Cursor, window: Window): void {
  const { passages, impacts, to, weight } = cursor;
  const { sums, start, end } = window;
  let i = cursor.at;
  for (; i < to; i++) {
    const passage = passages[i] as number;
    if (passage >= end) break;
    sums[passage - start] = (sums[passage - start] as number) + weight * (impacts[i] as number);
  }
  cursor.at = i;
}

/** Lists the passages of the first term of a window, and sums its entries. */
export function listFirst(cursor: Cursor, window: Window): void {
  const { passages, impacts, to, weight } = cursor;
  const { sums, places, start, end } = window;
  let count = 0;
  let i = cursor.at;
  for (; i < to; i++) {
    const passage = passages[i] as number;
    if (passage >= end) break;
    sums[passage - start] = weight * (impacts[i] as number);
    places[count++] = passage - start;
  }
  cursor.at = i;
  window.count = count;
  window.isSorted = true;
}

/** Adds the entries of a further term and lists each passage the first time. */
export function addListed(cursor: Cursor, window: Window): void {
  const { passages, impacts, to, weight } = cursor;
  const { sums, places, start, end } = window;
  let { count } = window;
  let i = cursor.at;
  for (; i < to; i++) {
    const passage = passages[i] as number;
    if (passage >= end) break;
    const place = passage - start;
    const sum = sums[place] as number;
    if (sum === 0) places[count++] = place;
    sums[place] = sum + weight * (impacts[i] as number);
  }
  cursor.at = i;
  if (count > window.count) window.isSorted = false;
  window.count = count;
}

/** Adds those entries of the first term of a window that are above `limit`, and lists their passages. */
export function listLone(cursor: Cursor, window: Window, limit: number): void {
  const { passages, impacts, to, weight } = cursor;
  const { sums, places, start, end } = window;
  let count = 0;
  let i = cursor.at;
  for (; i < to; i++) {
    const passage = passages[i] as number;
    if (passage >= end) break;
    const sum = weight * (impacts[i] as number);
    if (sum <= limit) continue;
    sums[passage - start] = sum;
    places[count++] = passage - start;
  }
  cursor.at = i;
  window.count = count;
  window.isSorted = true;
}

/** Adds the entries of a term to the passages that have a sum already, going through all of its entries. */
export function addToFound(cursor: Cursor, window: Window): void {
  const { passages, impacts, to, weight } = cursor;
  const { sums, start, end } = window;
  let i = seek(cursor, start);
  for (; i < to; i++) {
    const passage = passages[i] as number;
    if (passage >= end) break;
    const sum = sums[passage - start] as number;
    if (sum !== 0) sums[passage - start] = sum + weight * (impacts[i] as number);
  }
  cursor.at = i;
}

/** Blocks of four entries that are passed one by one before larger leaps are made. */
const NEAR = 8;

/** Adds the entries of a term to the passages listed, which are looked up one after the other; they must be sorted. */
export function lookUp(cursor: Cursor, window: Window): void {
  const { passages, impacts, to, weight } = cursor;
  const { sums, places, start, count } = window;
  const lastFour = to - 4;
  let at = seek(cursor, start);
  for (let c = 0; c < count; c++) {
    const place = places[c] as number;
    const passage = start + place;
    let left = NEAR;
    while (at <= lastFour && (passages[at + 3] as number) < passage) {
      at += 4;
      if (--left > 0) continue;
      cursor.at = at;
      at = seek(cursor, passage);
      break;
    }
    while (at < to && (passages[at] as number) < passage) at++;
    if (at === to) break;
    if (passages[at] === passage) sums[place] = (sums[place] as number) + weight * (impacts[at] as number);
  }
  cursor.at = at;
}

/** Moves to the first entry of `passage` or a later one, by steps that double and then halve. */
function seek(cursor: Cursor, passage: number): number {
  const { passages, to } = cursor;
  let low = cursor.at;
  let high = low;
  for (let step = 1; high < to && (passages[high] as number) < passage; step *= 2) {
    low = high + 1;
    high += step;
  }
  if (high > to) high = to;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((passages[middle] as number) < passage) low = middle + 1;
    else high = middle;
  }
  cursor.at = low;
  return low;
}
