/**
 * Cuts a batch into micro-batches in which common beginnings are computed once (`packing.ts`): either by length alone, or
 * with the sequences of one beginning together, whichever costs less. Attention pads its sequences to the longest and
 * costs the square of that, so that a group of unequal lengths may be cut.
 */
import { type MicroBatch, paddedTokens, planMicroBatches } from "./micro-batch.ts";
import { commonBeginning, packSequences } from "./packing.ts";

export interface SharingSetting {
  /** Most tokens of a micro-batch at the places of attention, padding included. */
  readonly tokenBudget: number;
  /** Scores of attention that cost as much as a token does beside them. */
  readonly scoresPerToken: number;
}

/** Beginnings of fewer tokens make no group. */
const leastBeginning = 16;
/** Tokens that could be computed in the time in which a micro-batch reads the weights and its gradients are added up. */
const tokensPerMicroBatch = 32;

/** As `planMicroBatches`, for sequences that may begin alike. */
export function planSharing(sequences: readonly Int32Array[], setting: SharingSetting): MicroBatch[] {
  const byLength = planMicroBatches(
    sequences.map(({ length }) => length),
    setting.tokenBudget,
  );
  const groups = groupsOf(sequences);
  if (groups.length === sequences.length) return byLength;
  const byBeginning = cut(groups.flat(), sequences, setting);
  const cost = (plan: readonly MicroBatch[]): number =>
    plan.reduce((sum, microBatch) => sum + costOf(microBatch, sequences, setting), 0);
  return cost(byBeginning) < cost(byLength) ? byBeginning : byLength;
}

/** What a micro-batch of these sequences costs, in tokens. */
export function costOf(
  microBatch: MicroBatch,
  sequences: readonly Int32Array[],
  { scoresPerToken }: Pick<SharingSetting, "scoresPerToken">,
): number {
  const { time, members } = microBatch;
  const rows = packSequences(
    members.map((index) => sequences[index] as Int32Array),
    time,
  ).tokens.length;
  return rows + (paddedTokens(microBatch) * time) / scoresPerToken + tokensPerMicroBatch;
}

/** Indexes of sequences that begin alike, the longest first, ties by index; groups likewise. */
function groupsOf(sequences: readonly Int32Array[]): number[][] {
  const sequence = (index: number): Int32Array => sequences[index] as Int32Array;
  const inOrder = sequences
    .map((_, index) => index)
    .sort((a, b) => compare(sequence(a), sequence(b)) || a - b);
  const groups: number[][] = [];
  for (const [place, index] of inOrder.entries()) {
    const before = inOrder[place - 1];
    const isAlike =
      before !== undefined && commonBeginning(sequence(before), sequence(index)) >= leastBeginning;
    if (isAlike) groups.at(-1)?.push(index);
    else groups.push([index]);
  }
  const longestFirst = (a: number, b: number): number => sequence(b).length - sequence(a).length || a - b;
  for (const group of groups) group.sort(longestFirst);
  return groups.sort((a, b) => longestFirst(a[0] as number, b[0] as number));
}

/** By token, and the shorter first where it is the beginning of the other. */
function compare(a: Int32Array, b: Int32Array): number {
  const length = commonBeginning(a, b);
  return (a[length] ?? -1) - (b[length] ?? -1);
}

/** The cheapest way to cut sequences in this order, each with what it shares with the one before. */
function cut(
  order: readonly number[],
  sequences: readonly Int32Array[],
  { tokenBudget, scoresPerToken }: SharingSetting,
): MicroBatch[] {
  const lengths = order.map((index) => (sequences[index] as Int32Array).length);
  const shared = order.map((index, place) =>
    place === 0
      ? 0
      : commonBeginning(sequences[order[place - 1] as number] as Int32Array, sequences[index] as Int32Array),
  );
  /** Of the first `end` sequences: the least cost, and where the last micro-batch starts. */
  const best = [{ cost: 0, start: 0, time: 0 }];
  for (let end = 1; end <= order.length; end++) {
    let [rows, time] = [0, 0];
    let least = { cost: Number.POSITIVE_INFINITY, start: 0, time: 0 };
    for (let start = end - 1; start >= 0; start--) {
      rows += (lengths[start] as number) - (start + 1 < end ? (shared[start + 1] as number) : 0);
      time = Math.max(time, lengths[start] as number);
      const places = (end - start) * time;
      if (places > tokenBudget && end - start > 1) break;
      const own = rows + (places * time) / scoresPerToken + tokensPerMicroBatch;
      const cost = (best[start]?.cost as number) + own;
      if (cost < least.cost) least = { cost, start, time };
    }
    best.push(least);
  }
  const plan: MicroBatch[] = [];
  for (let end = order.length; end > 0; ) {
    const { start, time } = best[end] as (typeof best)[0];
    plan.unshift({ time, members: order.slice(start, end) });
    end = start;
  }
  return plan;
}
