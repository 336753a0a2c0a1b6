/**
 * From rewarded trajectories to groups that can be learned from. Infrastructure failures are dropped, groups
 * without signal may be, and everything dropped is counted.
 */
import { questionKey } from "../corpus/question.ts";
import { isInfrastructureFailure } from "../environment/stop-reason.ts";
import { assert } from "../errors.ts";
import type { Trajectory } from "../rollout/trajectory.ts";
import { type AdvantageOptions, groupAdvantages, hasSignal } from "./advantage.ts";

export interface RewardedTrajectory {
  readonly trajectory: Trajectory;
  /** Undefined where the world failed: such a trajectory has no reward. */
  readonly reward: number | undefined;
}

export interface AdvantagedTrajectory {
  readonly trajectory: Trajectory;
  readonly reward: number;
  readonly advantage: number;
}

export interface GroupOptions {
  readonly advantage: AdvantageOptions;
  /** Drop groups whose rewards are all equal; kept, they have zero advantage but count in the mean of the loss. */
  readonly rejectGroupsWithoutSignal: boolean;
}

export interface GroupReport {
  /** What is left to train on, group after group. */
  readonly trajectories: readonly AdvantagedTrajectory[];
  /** Groups in `trajectories`. */
  readonly groups: number;
  /** Trajectories dropped because the world failed, not the policy. */
  readonly failed: number;
  /** Groups dropped because failures left no trajectory, or a single one of several: nothing to compare it with. */
  readonly broken: number;
  /** Groups whose rewards were all equal, whether they were rejected or kept. */
  readonly withoutSignal: number;
}

/** The trajectories that the world did not fail, in order: what an algorithm that compares no siblings trains on. */
export function soundTrajectories(
  rewarded: readonly RewardedTrajectory[],
): (RewardedTrajectory & { readonly reward: number })[] {
  return rewarded.filter(isSound);
}

/**
 * Groups the trajectories of one step and gives each its advantage. Two data sets that use equal ids, or equal
 * group names, never share a group: the key is the group together with the question's data set and id.
 */
export function advantagesByGroup(
  rewarded: readonly RewardedTrajectory[],
  options: GroupOptions,
): GroupReport {
  const kept: AdvantagedTrajectory[] = [];
  const counts = { groups: 0, failed: 0, broken: 0, withoutSignal: 0 };
  for (const members of groupMembers(rewarded)) {
    const sound = members.filter(isSound);
    counts.failed += members.length - sound.length;
    if (sound.length < members.length && sound.length <= 1) {
      counts.broken++;
      continue;
    }
    const rewards = sound.map(({ reward }) => reward);
    if (!hasSignal(rewards)) {
      counts.withoutSignal++;
      if (options.rejectGroupsWithoutSignal) continue;
    }
    counts.groups++;
    const advantages = groupAdvantages(rewards, options.advantage);
    for (const [i, member] of sound.entries()) kept.push({ ...member, advantage: advantages[i] as number });
  }
  return { trajectories: kept, ...counts };
}

/** Whether the world did not fail it, so that it has a reward. */
export function isSound(
  member: RewardedTrajectory,
): member is RewardedTrajectory & { readonly reward: number } {
  const isFailure = isInfrastructureFailure(member.trajectory.stopReason);
  assert(isFailure || member.reward !== undefined, "every trajectory that did not fail has a reward");
  return !isFailure;
}

/** The trajectories of each group, groups in the order they first appear. */
export function groupMembers(rewarded: readonly RewardedTrajectory[]): Iterable<RewardedTrajectory[]> {
  const groups = new Map<string, RewardedTrajectory[]>();
  for (const member of rewarded) {
    const { group, question } = member.trajectory;
    const key = JSON.stringify([group, questionKey(question)]);
    const members = groups.get(key);
    if (members) members.push(member);
    else groups.set(key, [member]);
  }
  return groups.values();
}
