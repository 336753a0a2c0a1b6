/**
 * The inner loops of the ranking, each a small function of its own, since V8 optimises those far better than one
 * large body. They work on one window of the corpus; cursors stop at its end.
 */
import { nthLargest } from "./select.ts";
import type { TermEntries } from "./term-entries.ts";
import type { TopK } from "./top-k.ts";

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

/** Adds the entries of a term and lists each passage the first time. */
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
}

/** Lists the passages whose sum is above `limit`. */
export function listAbove(window: Window, limit: number): void {
  const { sums, places } = window;
  let count = 0;
  for (let place = 0; place < sums.length; place += GROUP) {
    if (sumOfGroup(sums, place) <= limit) continue;
    for (let i = place; i < place + GROUP; i++) if ((sums[i] as number) > limit) places[count++] = i;
  }
  window.count = count;
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

/** Adds the entries of a term to the passages listed, which are looked up one by one; they must be sorted. */
export function lookUp(cursor: Cursor, window: Window): void {
  const { passages, impacts, to, weight } = cursor;
  const { sums, places, start, count } = window;
  for (let c = 0; c < count; c++) {
    const place = places[c] as number;
    const at = seek(cursor, start + place);
    if (at === to) break;
    if (passages[at] === start + place)
      sums[place] = (sums[place] as number) + weight * (impacts[at] as number);
  }
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

/**
 * A score just below the k-th largest of the first `count` listed sums (at least k), which no passage of the best k
 * can have, even where scores are equal. `work` is overwritten and holds at least as many values.
 */
export function floorOf(
  { sums, places }: Window,
  k: number,
  { count, work }: { readonly count: number; readonly work: Float64Array },
): number {
  for (let c = 0; c < count; c++) work[c] = sums[places[c] as number] as number;
  return nthLargest(work, count, k) * (1 - 2 ** -50);
}

/** Keeps the listed passages whose sum is above `limit` and clears the sums of the others. */
export function keepAbove(window: Window, limit: number): void {
  const { sums, places } = window;
  let kept = 0;
  for (let i = 0; i < window.count; i++) {
    const place = places[i] as number;
    if ((sums[place] as number) > limit) places[kept++] = place;
    else sums[place] = 0;
  }
  window.count = kept;
}

/** Sorts the listed passages. */
export function sortPlaces({ places, count }: Window): void {
  if (count > 32) places.subarray(0, count).sort();
  else
    for (let i = 1; i < count; i++) {
      const place = places[i] as number;
      let j = i - 1;
      for (; j >= 0 && (places[j] as number) > place; j--) places[j + 1] = places[j] as number;
      places[j + 1] = place;
    }
}

/**
 * Offers all passages that have a sum above the floor, and clears the sums. Four are looked at together: none of them is above the
 * threshold unless all of them together are.
 */
export function offerWindow({ sums, start }: Window, top: TopK, floor: number): void {
  let threshold = Math.max(floor, top.threshold);
  for (let place = 0; place < sums.length; place += GROUP) {
    if (sumOfGroup(sums, place) <= threshold) continue;
    for (let i = place; i < place + GROUP; i++) {
      const sum = sums[i] as number;
      if (sum <= threshold) continue;
      top.offer(start + i, sum);
      if (top.threshold > threshold) threshold = top.threshold;
    }
  }
  sums.fill(0);
}

function sumOfGroup(sums: Float64Array, place: number): number {
  return (
    (sums[place] as number) +
    (sums[place + 1] as number) +
    ((sums[place + 2] as number) + (sums[place + 3] as number))
  );
}

/** Offers the listed passages whose sum is not below the floor, and clears their sums. */
export function offerListed({ sums, places, start, count }: Window, top: TopK, floor: number): void {
  let threshold = Math.max(floor, top.threshold);
  for (let c = 0; c < count; c++) {
    const place = places[c] as number;
    const sum = sums[place] as number;
    sums[place] = 0;
    if (sum < threshold) continue;
    top.offer(start + place, sum);
    if (top.threshold > threshold) threshold = top.threshold;
  }
}
