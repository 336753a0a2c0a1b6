/**
 * Advantages of a group: how much better each trajectory was than its siblings, the trajectories of the same
 * question. GRPO (Shao et al. 2024): (r - mean) / (std + 1e-6) with the unbiased standard deviation, as Search-R1
 * computes it; Dr. GRPO (Liu et al. 2025) leaves the division out, so that easy and hard questions weigh alike.
 * RLOO is the latter times n / (n - 1), a constant the learning rate absorbs, and has no option of its own.
 */
import { assert } from "../errors.ts";

export interface AdvantageOptions {
  /** `std`: divide by the standard deviation of the group (GRPO); `none`: only subtract the mean (Dr. GRPO). */
  readonly normalize: "std" | "none";
}

const epsilon = 1e-6;

/**
 * One advantage for each reward of a group, in order. Groups whose rewards are all equal get exact zeros.
 * A group of one has no sibling to compare with: Search-R1 then takes mean 0 and std 1, which is REINFORCE
 * without a baseline, and so do we.
 */
export function groupAdvantages(rewards: readonly number[], options: AdvantageOptions): number[] {
  for (const reward of rewards) assert(Number.isFinite(reward), `a reward is finite, not ${reward}`);
  if (!hasSignal(rewards)) return rewards.map(() => 0);
  const alone = rewards.length === 1;
  const mean = alone ? 0 : rewards.reduce((sum, reward) => sum + reward, 0) / rewards.length;
  if (options.normalize === "none") return rewards.map((reward) => reward - mean);
  const deviation = alone ? 1 : unbiasedDeviation(rewards, mean);
  return rewards.map((reward) => (reward - mean) / (deviation + epsilon));
}

/** True when the group teaches something: rewards that differ or, in a group of one, a reward other than 0. */
export function hasSignal(rewards: readonly number[]): boolean {
  if (rewards.length === 1) return rewards[0] !== 0;
  return rewards.some((reward) => reward !== rewards[0]);
}

function unbiasedDeviation(values: readonly number[], mean: number): number {
  const squares = values.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  return Math.sqrt(squares / (values.length - 1));
}
