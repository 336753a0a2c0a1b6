/** Cuts a batch of sequences into micro-batches within a budget of tokens: sequences of similar length together, so that little is padded. */

export interface MicroBatch {
  /** Tokens of the longest sequence; the others are padded to it. */
  readonly time: number;
  /** Indexes into the batch. */
  readonly members: readonly number[];
}

/** A micro-batch ends before a sequence shorter than this share of its longest: a smaller call costs less than more padding. */
const leastShare = 0.8;

/**
 * Plans micro-batches for sequences of the given lengths (tokens, at least 1): longest first, ties by index; each
 * of at most `tokenBudget` tokens, padding included, but always of at least one sequence.
 */
export function planMicroBatches(lengths: readonly number[], tokenBudget: number): MicroBatch[] {
  const order = lengths
    .map((_, index) => index)
    .sort((a, b) => (lengths[b] as number) - (lengths[a] as number) || a - b);
  const plan: { time: number; members: number[] }[] = [];
  for (const index of order) {
    const length = lengths[index] as number;
    const current = plan.at(-1);
    const fits =
      current &&
      length >= leastShare * current.time &&
      (current.members.length + 1) * current.time <= tokenBudget;
    if (fits) current.members.push(index);
    else plan.push({ time: length, members: [index] });
  }
  return plan;
}
