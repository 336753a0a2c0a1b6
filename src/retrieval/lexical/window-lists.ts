/**
 * The inner loops of the ranking over the passages of a window, all of them or those listed: choosing, sorting and
 * offering them. Each is a small function of its own, as in `window-loops.ts`.
 */
import { nthLargest } from "./select.ts";
import type { TopK } from "./top-k.ts";
import { GROUP, type Window } from "./window-loops.ts";

/** Lists the passages whose sum is above `limit`. */
export function listAbove(window: Window, limit: number): void {
  const { sums, places, start, end } = window;
  const size = end - start;
  let count = 0;
  for (let place = 0; place < size; place += GROUP) {
    if (sumOfGroup(sums, place) <= limit) continue;
    for (let i = place; i < place + GROUP; i++) if ((sums[i] as number) > limit) places[count++] = i;
  }
  window.count = count;
  window.isSorted = true;
}

/**
 * A score just below the k-th largest of the first `count` listed sums, which no passage of the best k can have, even
 * where scores are equal; or `floor` where that is no higher. `work` is overwritten and holds at least as many values.
 */
export function floorOf({ sums, places }: Window, { k, floor, count, work }: FloorSearch): number {
  let above = 0;
  for (let c = 0; c < count; c++) {
    const sum = sums[places[c] as number] as number;
    if (sum > floor) work[above++] = sum;
  }
  return above < k ? floor : Math.max(floor, nthLargest(work, above, k) * (1 - 2 ** -50));
}

export interface FloorSearch {
  readonly k: number;
  /** What is known already. */
  readonly floor: number;
  readonly count: number;
  readonly work: Float64Array;
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

/** Sorts the listed passages: few by insertion, many by a bit for each. */
export function sortPlaces(window: Window): void {
  const { places, count } = window;
  if (window.isSorted) return;
  window.isSorted = true;
  if (count > FEW) {
    sortByBits(window);
    return;
  }
  for (let i = 1; i < count; i++) {
    const place = places[i] as number;
    let j = i - 1;
    for (; j >= 0 && (places[j] as number) > place; j--) places[j + 1] = places[j] as number;
    places[j + 1] = place;
  }
}

const FEW = 24;

function sortByBits({ places, bits, count }: Window): void {
  for (let c = 0; c < count; c++) {
    const place = places[c] as number;
    bits[place >>> 5] = (bits[place >>> 5] as number) | (1 << (place & 31));
  }
  let at = 0;
  for (let block = 0; at < count; block++) {
    for (let word = bits[block] as number; word !== 0; word &= word - 1)
      places[at++] = block * 32 + 31 - Math.clz32(word & -word);
    bits[block] = 0;
  }
}

/**
 * Offers all passages that have a sum above the floor, and clears the sums. Four are looked at together: none of them is above the
 * threshold unless all of them together are.
 */
export function offerWindow({ sums, start, end }: Window, top: TopK, floor: number): void {
  const size = end - start;
  let threshold = Math.max(floor, top.threshold);
  for (let place = 0; place < size; place += GROUP) {
    if (sumOfGroup(sums, place) <= threshold) continue;
    for (let i = place; i < place + GROUP; i++) {
      const sum = sums[i] as number;
      if (sum <= threshold) continue;
      top.offer(start + i, sum);
      if (top.threshold > threshold) threshold = top.threshold;
    }
  }
  sums.fill(0, 0, size);
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
