/** The points of a sweep: what each value of a setting achieved and cost, and which of them are worth having. Pure. */
import type { MetricName } from "./item.ts";
import { hypervolume, paretoFront } from "./pareto.ts";
import type { EvaluationResult } from "./result.ts";

export const sweepCosts = ["searches", "tokens", "seconds", "dollars"] as const;
export type SweepCost = (typeof sweepCosts)[number];

export interface SweepPoint {
  /** The value of the setting. */
  readonly value: unknown;
  readonly utility: number;
  readonly utilityInterval: readonly [number, number];
  /** A question, mean; tokens are those that the agent wrote, and that a generator and a ranker read and wrote. */
  readonly searches: number;
  readonly tokens: number;
  readonly seconds: number;
  /** Of all models but a judge, and of searches; absent where nothing has a price. */
  readonly dollars?: number;
  readonly n: number;
}

/** The metric that a sweep takes for utility where none is named: a judge's score, else exact match. */
export function utilityMetric(results: readonly EvaluationResult[]): MetricName {
  return results.every(({ summary }) => summary.overall.score !== undefined) ? "score" : "em";
}

/** The point of one evaluation; undefined where nothing was scored by `metric`. */
export function sweepPoint(
  value: unknown,
  { summary: { overall } }: EvaluationResult,
  metric: MetricName,
): SweepPoint | undefined {
  const utility = overall[metric];
  if (utility === undefined) return undefined;
  const mean = (name: MetricName): number => overall[name]?.mean ?? 0;
  const { totalDollars: dollars } = overall;
  return {
    value,
    utility: utility.mean,
    utilityInterval: utility.ci,
    searches: mean("searches"),
    tokens: overall.totalTokens?.mean ?? mean("policyTokens"),
    seconds: mean("timeMs") / 1000,
    ...(dollars && { dollars: dollars.mean }),
    n: overall.n,
  };
}

export interface Front {
  readonly cost: SweepCost;
  readonly points: readonly SweepPoint[];
  /** In [0, 1] for utilities of at most 1; see `pareto.ts`. */
  readonly hypervolume: number;
  /** The cost that counts as the worst. */
  readonly worstCost: number;
}

/**
 * The front of utility against one cost; undefined where the points do not have it, or all have none. `worst` is the most
 * the cost can be, where that is known; else the largest cost of the points, tenth part added.
 */
export function frontOf(points: readonly SweepPoint[], cost: SweepCost, worst?: number): Front | undefined {
  const placed = points.flatMap((point) => {
    const value = point[cost];
    return value === undefined ? [] : [{ utility: point.utility, cost: value, point }];
  });
  const worstCost = worst ?? 1.1 * Math.max(0, ...placed.map((at) => at.cost));
  if (placed.length === 0 || placed.length < points.length || worstCost <= 0) return undefined;
  return {
    cost,
    points: paretoFront(placed).map(({ point }) => point),
    hypervolume: hypervolume(placed, { utility: 0, cost: worstCost }),
    worstCost,
  };
}
