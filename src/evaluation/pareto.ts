/**
 * Two objectives at once: more utility for less cost. A point is on the Pareto front when no other is at least as good
 * in both and better in one. The hypervolume is the area that the points dominate, up to a cost and down to a utility
 * that count as the worst (Zitzler and Thiele 1998), divided by the worst cost so that it does not depend on its unit.
 */
import { assert } from "../errors.ts";

export interface CostPoint {
  readonly utility: number;
  readonly cost: number;
}

/** Points that no other dominates, by rising cost; of equal points the first. */
export function paretoFront<P extends CostPoint>(points: readonly P[]): P[] {
  const sorted = points
    .map((point, index) => ({ point, index }))
    .sort((a, b) => a.point.cost - b.point.cost || b.point.utility - a.point.utility || a.index - b.index);
  const front: P[] = [];
  for (const { point } of sorted)
    if (point.utility > (front.at(-1)?.utility ?? Number.NEGATIVE_INFINITY)) front.push(point);
  return front;
}

/**
 * The dominated area over `worst.cost`: for utilities from 0 to 1 above a worst of 0 it lies in [0, 1]. Points that are
 * no better than the worst in either add nothing. `worst.cost` must be positive.
 */
export function hypervolume(points: readonly CostPoint[], worst: CostPoint): number {
  assert(worst.cost > 0, `the worst cost is positive, not ${worst.cost}`);
  const inside = points.filter(({ utility, cost }) => cost < worst.cost && utility > worst.utility);
  let area = 0;
  let reached = worst.utility;
  for (const { utility, cost } of paretoFront(inside)) {
    area += (utility - reached) * (worst.cost - cost);
    reached = utility;
  }
  return area / worst.cost;
}
