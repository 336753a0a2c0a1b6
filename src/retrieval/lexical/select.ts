/** Selection without sorting (Hoare's quickselect, 1961), and Shell's sort for short lists in parallel arrays. */

/** The `rank`-th largest (from 1) of the first `length` values, which are reordered. */
export function nthLargest(values: Float64Array, length: number, rank: number): number {
  const target = rank - 1;
  let low = 0;
  let high = length - 1;
  while (low < high) {
    const pivot = medianOf(values, low, high);
    let i = low - 1;
    let j = high + 1;
    for (;;) {
      do i++;
      while ((values[i] as number) > pivot);
      do j--;
      while ((values[j] as number) < pivot);
      if (i >= j) break;
      const swapped = values[i] as number;
      values[i] = values[j] as number;
      values[j] = swapped;
    }
    if (target <= j) high = j;
    else low = j + 1;
  }
  return values[target] as number;
}

/** The median of the first, the middle and the last but one; never the last alone, so that both parts are smaller. */
function medianOf(values: Float64Array, low: number, high: number): number {
  const a = values[low] as number;
  const b = values[(low + high) >>> 1] as number;
  const c = values[high - 1] as number;
  return Math.max(Math.min(a, b), Math.min(Math.max(a, b), c));
}

const GAPS = [100_894, 44_842, 19_930, 8858, 3937, 1750, 701, 301, 132, 57, 23, 10, 4, 1];

/** Sorts both arrays by falling score, equal scores by rising position. */
export function sortByScore(scores: Float64Array, positions: Uint32Array): void {
  for (const gap of GAPS)
    for (let i = gap; i < scores.length; i++) {
      const score = scores[i] as number;
      const position = positions[i] as number;
      let at = i;
      for (; at >= gap; at -= gap) {
        const other = scores[at - gap] as number;
        if (other > score || (other === score && (positions[at - gap] as number) < position)) break;
        scores[at] = other;
        positions[at] = positions[at - gap] as number;
      }
      scores[at] = score;
      positions[at] = position;
    }
}
