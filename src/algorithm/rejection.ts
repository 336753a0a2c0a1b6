/**
 * Rejection sampling (as a baseline of Search-R1; RAFT, arXiv 2304.06767): of the trajectories of each question those are
 * kept that earned enough and that say something different from each other. Pure; training on them is `training/`.
 */
import { type GroupReport, groupMembers, isSound, type RewardedTrajectory } from "./group.ts";

export interface RejectionRule {
  /** Least reward that is kept. */
  readonly threshold: number;
  /** Most of one group; absent: all that differ. */
  readonly keep?: number | undefined;
}

/** What is kept, with advantage 1; groups that left nothing count as without signal. */
export function keptTrajectories(
  rewarded: readonly RewardedTrajectory[],
  { threshold, keep = Number.POSITIVE_INFINITY }: RejectionRule,
): GroupReport {
  const counts = { groups: 0, failed: 0, broken: 0, withoutSignal: 0 };
  const trajectories = [...groupMembers(rewarded)].flatMap((members) => {
    const sound = members.filter(isSound);
    counts.failed += members.length - sound.length;
    if (sound.length === 0) counts.broken++;
    const good = new Map<string, (typeof sound)[number]>();
    for (const member of sound) {
      const key = writtenTokens(member);
      if (member.reward >= threshold && !good.has(key) && good.size < keep) good.set(key, member);
    }
    if (good.size > 0) counts.groups++;
    else if (sound.length > 0) counts.withoutSignal++;
    return [...good.values()].map((member) => ({ ...member, advantage: 1 }));
  });
  return { trajectories, ...counts };
}

/** What the policy wrote, turn by turn. */
function writtenTokens({ trajectory }: RewardedTrajectory): string {
  const turns = trajectory.segments.filter(({ source }) => source === "policy");
  return JSON.stringify(turns.map(({ tokens, text }) => (tokens.length > 0 ? tokens : text)));
}
