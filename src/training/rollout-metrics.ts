/** Metrics of the trajectories that one step sampled; pure. Failures of the world count apart and nowhere else. */
import type { GroupReport } from "../algorithm/group.ts";
import type { EnvironmentOptions } from "../environment/environment-options.ts";
import { isInfrastructureFailure, stopReasons } from "../environment/stop-reason.ts";
import { deficiencyKey, stopKey } from "../reporting/metric-keys.ts";
import type { MetricRow } from "../reporting/metric-row.ts";
import { deficiencies, deficiencyNames } from "../reward/deficiencies.ts";
import { exactMatch } from "../reward/exact-match.ts";
import { retrievalAccuracy, retrievalRecall, wordMatch } from "../reward/retrieved-answer.ts";
import { tokenF1 } from "../reward/token-f1.ts";
import type { Trajectory } from "../rollout/trajectory.ts";
import {
  goldPassageRecall,
  invalidTurnCount,
  observationTokenCount,
  policyTokenCount,
  queries,
  searchCount,
  tokenCount,
  truncatedSearchCount,
  turnCount,
} from "../rollout/trajectory-view.ts";

export interface RewardedTrajectory {
  readonly trajectory: Trajectory;
  /** Undefined where the world failed. */
  readonly reward: number | undefined;
}

export function rolloutMetrics(
  sampled: readonly RewardedTrajectory[],
  groups: GroupReport,
  setting: { readonly rolloutMs: number; readonly environment: EnvironmentOptions },
): Partial<MetricRow> {
  const all = sampled.map(({ trajectory }) => trajectory);
  const sound = all.filter(({ stopReason }) => !isInfrastructureFailure(stopReason));
  const rewards = sampled.flatMap(({ reward }) => reward ?? []);
  const seconds = setting.rolloutMs / 1000;
  const policyTokens = sum(sound.map(policyTokenCount));
  const groupCount = groups.groups + groups.broken + groups.withoutSignal;
  return {
    "reward/mean": mean(rewards),
    "reward/std": deviation(rewards),
    "reward/groupStd": mean([...groupRewards(sampled).values()].map(deviation)),
    "reward/exactMatch": mean(sound.map(({ answer, question }) => exactMatch(answer, question.goldAnswers))),
    "reward/f1": mean(sound.map(({ answer, question }) => tokenF1(answer, question.goldAnswers))),
    "advantage/std": deviation(groups.trajectories.map(({ advantage }) => advantage)),
    ...searchMetrics(sound),
    ...deficiencyMetrics(sound),
    "length/cutTurns": cutTurns(sound, setting.environment.maxTurnTokens),
    "length/policyTokens": policyTokens / Math.max(1, sound.length),
    "length/observationTokens": mean(sound.map(observationTokenCount)),
    "length/contextTokens": mean(sound.map(tokenCount)),
    "length/contextTokensMax": Math.max(0, ...sound.map(tokenCount)),
    ...stopMetrics(all),
    "group/count": groupCount,
    "group/rejected": groups.withoutSignal / Math.max(1, groupCount),
    "group/failed": groups.failed / Math.max(1, all.length),
    "time/policy": sum(all.map(({ time }) => time.policyMs)) / 1000,
    "time/retrieval": sum(all.map(({ time }) => time.retrievalMs)) / 1000,
    "rate/sampledTokens": policyTokens / seconds,
    "rate/trajectories": all.length / seconds,
  };
}

/** The rewards of each group, failures of the world left out. */
function groupRewards(sampled: readonly RewardedTrajectory[]): ReadonlyMap<string, number[]> {
  const groups = new Map<string, number[]>();
  for (const { trajectory, reward } of sampled) {
    if (reward === undefined) continue;
    groups.set(trajectory.group, [...(groups.get(trajectory.group) ?? []), reward]);
  }
  return groups;
}

/** Share of the policy's turns that reached the limit of tokens. */
function cutTurns(sound: readonly Trajectory[], maxTurnTokens: number): number {
  const turns = sound.flatMap(({ segments }) => segments.filter(({ source }) => source === "policy"));
  const cut = turns.filter(({ tokens }) => tokens.length >= maxTurnTokens);
  return cut.length / Math.max(1, turns.length);
}

function searchMetrics(sound: readonly Trajectory[]): Partial<MetricRow> {
  const turns = Math.max(1, sum(sound.map(turnCount)));
  const searches = sum(sound.map(searchCount));
  const repeated = sum(
    sound.map((trajectory) => queries(trajectory).length - new Set(queries(trajectory)).size),
  );
  const recalls = sound.flatMap((trajectory) => goldPassageRecall(trajectory) ?? []);
  return {
    "search/count": searches / Math.max(1, sound.length),
    "search/invalid": sum(sound.map(invalidTurnCount)) / turns,
    "search/repeated": repeated / Math.max(1, searches),
    "search/truncated": sum(sound.map(truncatedSearchCount)) / Math.max(1, searches),
    ...(recalls.length > 0 && { "search/goldRecall": mean(recalls) }),
    "search/answerRecall": mean(sound.map((trajectory) => retrievalRecall(trajectory, wordMatch))),
    "search/answerAccuracy": mean(sound.map((trajectory) => retrievalAccuracy(trajectory, wordMatch))),
    "turn/count": turns / Math.max(1, sound.length),
  };
}

/** Shares of trajectories, by both definitions of DeSA. */
function deficiencyMetrics(sound: readonly Trajectory[]): Partial<MetricRow> {
  const found = sound.map(deficiencies);
  return Object.fromEntries(
    deficiencyNames.map((name) => [deficiencyKey(name), mean(found.map((flags) => flags[name]))]),
  );
}

function stopMetrics(all: readonly Trajectory[]): Partial<MetricRow> {
  return Object.fromEntries(
    stopReasons.map((reason) => [
      stopKey(reason),
      all.filter(({ stopReason }) => stopReason === reason).length / Math.max(1, all.length),
    ]),
  );
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

function mean(values: readonly number[]): number {
  return values.length === 0 ? 0 : sum(values) / values.length;
}

function deviation(values: readonly number[]): number {
  const centre = mean(values);
  return Math.sqrt(mean(values.map((value) => (value - centre) ** 2)));
}
