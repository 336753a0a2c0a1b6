/**
 * What a ranker learns from one step, pure: the calls of all sound trajectories are judged, those of agents that broke
 * their format left out, the rest grouped by query (`query-groups.ts`) and given advantages within their group.
 *
 * Not taken over from the released code: copies that fill a batch up to a multiple of the processors, and unfiltered calls
 * where the filters leave nothing; then nothing is learnt.
 */
import { advantagesByGroup, type GroupReport } from "../algorithm/group.ts";
import type { GrpoOptions } from "../algorithm/options.ts";
import { groupQueries } from "../algorithm/query-groups.ts";
import type { GenerativeRankerOptions } from "../config/ranker-options.ts";
import { isInfrastructureFailure } from "../environment/stop-reason.ts";
import { isLearntFrom, type RankingJudgement, rankingReward } from "../reward/ranking-reward.ts";
import type { Trajectory } from "../rollout/trajectory.ts";
import { trajectoryText } from "../rollout/trajectory-view.ts";
import type { Random } from "../shared/random.ts";

/** A call of the ranker that did not fail. */
export interface JudgedRanking {
  readonly ranking: Trajectory;
  readonly judgement: RankingJudgement;
  /** Whether the agent's format lets the ranker learn from it. */
  readonly isLearntFrom: boolean;
}

export interface RankerLessons {
  /** All calls, with those that failed. */
  readonly calls: number;
  readonly judged: readonly JudgedRanking[];
  /** Groups that are trained on, each call under the name of its group. */
  readonly groups: GroupReport;
}

type LessonOptions = Pick<
  GenerativeRankerOptions,
  "grouping" | "reward" | "averageDuplicates" | "rejectEqualRewards" | "maxCallsPerTrajectory"
>;

/** The calls of `agents`, judged and grouped. `random` orders the groups where there is a cap. */
export function rankerLessons(
  agents: readonly Trajectory[],
  options: LessonOptions,
  { advantage, random }: { readonly advantage: GrpoOptions["advantage"]; readonly random: Random },
): RankerLessons {
  const sound = agents.filter(({ stopReason }) => !isInfrastructureFailure(stopReason));
  const judged = sound.flatMap((agent) => judgeCalls(agent, options));
  const groups = capped(groupsOf(judged, options), sound.length, options, random);
  const rewarded = groups.flatMap(({ name, members }) => {
    const rewards = members.map(({ judgement }) => judgement.value);
    const shared = options.averageDuplicates ? averaged(members, rewards) : rewards;
    return members.map(({ ranking }, i) => ({
      trajectory: { ...ranking, group: `${ranking.group}/${name}` },
      reward: shared[i] as number,
    }));
  });
  const rejectGroupsWithoutSignal = options.rejectEqualRewards;
  return {
    calls: agents.reduce((sum, { rankings = [] }) => sum + rankings.length, 0),
    judged,
    groups: advantagesByGroup(rewarded, { advantage, rejectGroupsWithoutSignal }),
  };
}

/** A call that failed, or whose judge did, is none to learn from. */
function judgeCalls(agent: Trajectory, { reward }: LessonOptions): JudgedRanking[] {
  const isGraded = ({ answer, ranking }: Trajectory): boolean =>
    reward.combine !== "judge" || answer === undefined || ranking?.grade !== undefined;
  const calls = (agent.rankings ?? []).filter((call) => call.segments.length > 1 && isGraded(call));
  return calls.map((ranking) => ({
    ranking,
    judgement: rankingReward(ranking, agent, reward),
    isLearntFrom: isLearntFrom(agent, reward),
  }));
}

interface NamedGroup {
  readonly name: string;
  readonly members: readonly JudgedRanking[];
}

/** The groups of each question in turn; a question of a step is one group of the agent's trajectories. */
function groupsOf(judged: readonly JudgedRanking[], { grouping }: LessonOptions): NamedGroup[] {
  const questions = new Map<string, JudgedRanking[]>();
  for (const call of judged.filter((each) => each.isLearntFrom))
    questions.set(call.ranking.group, [...(questions.get(call.ranking.group) ?? []), call]);
  return [...questions.values()].flatMap((calls) => {
    const named = calls.map((call) => ({
      call,
      query: call.ranking.ranking?.query ?? "",
      isAnswerable: call.judgement.isAnswerable,
    }));
    return groupQueries(named, grouping).map(({ name, members }) => ({
      name,
      members: members.map(({ call }) => call),
    }));
  });
}

/** Whole groups in random order while they fit under the cap, then in their own order again. */
function capped(
  groups: readonly NamedGroup[],
  trajectories: number,
  { maxCallsPerTrajectory }: LessonOptions,
  random: Random,
): readonly NamedGroup[] {
  if (maxCallsPerTrajectory === undefined) return groups;
  let room = maxCallsPerTrajectory * trajectories;
  const kept = new Set<NamedGroup>();
  for (const group of random.shuffle(groups)) {
    if (group.members.length > room) continue;
    room -= group.members.length;
    kept.add(group);
  }
  return groups.filter((group) => kept.has(group));
}

/** Calls with equal prompts and equal rankings get the mean of their rewards. */
function averaged(members: readonly JudgedRanking[], rewards: readonly number[]): number[] {
  const keys = members.map(({ ranking }) => trajectoryText(ranking));
  return keys.map((key) => {
    const same = rewards.filter((_, i) => keys[i] === key);
    return same.reduce((sum, value) => sum + value, 0) / same.length;
  });
}
