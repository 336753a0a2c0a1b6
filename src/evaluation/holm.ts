/**
 * Holm's correction (1979): several comparisons are several chances to be lucky, so the i-th smallest of m p values counts
 * m - i + 1 times, at least as much as the smaller ones, at most 1.
 */

/** The adjusted p values, in the order given. */
export function holm(ps: readonly number[]): number[] {
  const order = ps.map((_, i) => i).sort((a, b) => (ps[a] as number) - (ps[b] as number));
  const adjusted = new Array<number>(ps.length);
  let least = 0;
  for (const [rank, i] of order.entries()) {
    least = Math.min(1, Math.max(least, (ps.length - rank) * (ps[i] as number)));
    adjusted[i] = least;
  }
  return adjusted;
}
