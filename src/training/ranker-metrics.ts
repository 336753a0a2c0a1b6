/** Metrics of a ranker within one step; pure. */
import type { MetricKey } from "../reporting/metric-keys.ts";
import type { MetricRow } from "../reporting/metric-row.ts";
import type { Trajectory } from "../rollout/trajectory.ts";
import { policyTokenCount, tokenCount } from "../rollout/trajectory-view.ts";
import type { RankerLessons } from "./ranker-lessons.ts";

/** What the ranker did and earned; empty where no trajectory has calls. */
export function rankerMetrics(
  agents: readonly Trajectory[],
  { calls, judged, groups }: RankerLessons,
): Partial<MetricRow> {
  const rankings = agents.flatMap((agent) => agent.rankings ?? []);
  const judgements = judged.map(({ judgement }) => judgement);
  const answerable = judgements.filter(({ isAnswerable }) => isAnswerable);
  const usable = judged.filter(({ isLearntFrom }) => isLearntFrom).length;
  const trained = groups.trajectories.length;
  return {
    "ranker/calls": calls / Math.max(1, agents.length),
    "ranker/failed": (calls - judged.length) / Math.max(1, calls),
    "ranker/invalid": share(judgements.map(({ isValid }) => !isValid)),
    "ranker/answerable": share(judgements.map(({ isAnswerable }) => isAnswerable)),
    "ranker/reward": mean(judgements.map(({ value }) => value)),
    "ranker/relevance": mean(answerable.map(({ relevance }) => relevance)),
    "ranker/hit1": mean(answerable.map(({ hits }) => hits[0] as number)),
    "ranker/hit3": mean(answerable.map(({ hits }) => hits[1] as number)),
    "ranker/hit5": mean(answerable.map(({ hits }) => hits[2] as number)),
    "ranker/illFormedAgents": (judged.length - usable) / Math.max(1, judged.length),
    "ranker/ungrouped": (usable - trained) / Math.max(1, usable),
    "ranker/groups": groups.groups,
    "ranker/groupSize": trained / Math.max(1, groups.groups),
    "ranker/promptTokens": mean(rankings.map((each) => tokenCount(each) - policyTokenCount(each))),
    "ranker/policyTokens": mean(rankings.map(policyTokenCount)),
    "time/ranker": rankings.reduce((sum, { time }) => sum + time.policyMs, 0) / 1000,
  };
}

/** Where the keys of an update go when it was the ranker's. */
const updateKeys: Readonly<Partial<Record<MetricKey, MetricKey>>> = {
  "loss/value": "ranker/loss",
  "loss/tokens": "ranker/lossTokens",
  "gradient/norm": "ranker/gradientNorm",
  "kl/sampling": "ranker/klSampling",
  "kl/reference": "ranker/klReference",
  "clip/fraction": "ranker/clipFraction",
  "ratio/max": "ranker/ratioMax",
  "entropy/sampled": "ranker/entropy",
  "optimizer/learningRate": "ranker/learningRate",
  "optimizer/updates": "ranker/updates",
  "parity/maxLogprobDifference": "ranker/maxLogprobDifference",
};

/** The metrics of an update under the ranker's keys; the others are left out. */
export function asRankerMetrics(row: Partial<MetricRow>): Partial<MetricRow> {
  const entries = Object.entries(row).flatMap(([key, value]) => {
    const target = updateKeys[key as MetricKey];
    return target === undefined ? [] : [[target, value]];
  });
  return Object.fromEntries(entries) as Partial<MetricRow>;
}

function mean(values: readonly number[]): number {
  return values.length === 0 ? 0 : values.reduce((sum, value) => sum + value, 0) / values.length;
}

function share(flags: readonly boolean[]): number {
  return mean(flags.map(Number));
}
