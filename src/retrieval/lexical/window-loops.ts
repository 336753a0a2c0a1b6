/**
 * The inner loops of the ranking, each a small function of its own, since V8 optimises those far better than one
 * large body. They work on one window of the corpus; cursors stop at its end.
 */
import type { Cursor, Window } from "./ranking.ts";
import type { TopHeap } from "./top-heap.ts";

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
 * A score just below the k-th largest sum of the listed passages (at least k), which no passage of the best k
 * can have, even where scores are equal.
 */
export function floorOf({ sums, places, count }: Window, k: number): number {
  const best = new Float64Array(k);
  for (let c = 0; c < count; c++) {
    const sum = sums[places[c] as number] as number;
    if (sum > (best[0] as number)) replaceLeast(best, sum);
  }
  return (best[0] as number) * (1 - 2 ** -50);
}

/** Puts a value in place of the least, the first of a heap. */
function replaceLeast(heap: Float64Array, value: number): void {
  let at = 0;
  for (let child = 1; child < heap.length; child = 2 * at + 1) {
    const right = child + 1;
    if (right < heap.length && (heap[right] as number) < (heap[child] as number)) child = right;
    if ((heap[child] as number) >= value) break;
    heap[at] = heap[child] as number;
    at = child;
  }
  heap[at] = value;
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

/** Offers all passages that have a sum, and clears the sums. The threshold rises soon, so that few pass it. */
export function offerWindow({ sums, start, end }: Window, heap: TopHeap): void {
  let { threshold } = heap;
  for (let place = 0; place < end - start; place++) {
    const sum = sums[place] as number;
    if (sum <= threshold) continue;
    heap.offer(start + place, sum);
    threshold = heap.threshold;
  }
  sums.fill(0, 0, end - start);
}

/** Offers the listed passages and clears their sums. */
export function offerListed({ sums, places, start, count }: Window, heap: TopHeap): void {
  let { threshold } = heap;
  for (let c = 0; c < count; c++) {
    const place = places[c] as number;
    const sum = sums[place] as number;
    sums[place] = 0;
    if (sum < threshold) continue;
    heap.offer(start + place, sum);
    threshold = heap.threshold;
  }
}
