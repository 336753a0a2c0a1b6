/** Cuts a batch of sequences into micro-batches within a budget of tokens: sequences of similar length together, so that little is padded. */

export interface MicroBatch {
  /** Tokens of the longest sequence; the others are padded to it. */
  readonly time: number;
  /** Indexes into the batch. */
  readonly members: readonly number[];
}

/**
 * Plans micro-batches for sequences of the given lengths (tokens, at least 1): longest first, ties by index; each
 * of at most `tokenBudget` tokens, padding included, but always of at least one sequence.
 */
export function planMicroBatches(lengths: readonly number[], tokenBudget: number): MicroBatch[] {
  const order = lengths
    .map((_, index) => index)
    .sort((a, b) => (lengths[b] as number) - (lengths[a] as number) || a - b);
  const plan: MicroBatch[] = [];
  for (let start = 0; start < order.length; ) {
    const time = lengths[order[start] as number] as number;
    const members = order.slice(start, start + Math.max(1, Math.floor(tokenBudget / time)));
    plan.push({ time, members });
    start += members.length;
  }
  return plan;
}
