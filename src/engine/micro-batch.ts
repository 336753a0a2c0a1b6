/** Cuts a batch of sequences into micro-batches within a budget of tokens: sequences of similar length together, so that little is padded. */

export interface MicroBatch {
  /** Tokens of the longest sequence; the others are padded to it. */
  readonly time: number;
  /** Indexes into the batch. */
  readonly members: readonly number[];
}

/** What a call costs besides its tokens, in tokens: more padding than this in one micro-batch is dearer than another call. */
const callTokens = 256;

/**
 * Plans micro-batches for sequences of the given lengths (tokens, at least 1): longest first, ties by index; each
 * of at most `tokenBudget` tokens, padding included, but always of at least one sequence.
 */
export function planMicroBatches(lengths: readonly number[], tokenBudget: number): MicroBatch[] {
  const order = lengths
    .map((_, index) => index)
    .sort((a, b) => (lengths[b] as number) - (lengths[a] as number) || a - b);
  const plan: { time: number; members: number[]; padding: number }[] = [];
  for (const index of order) {
    const length = lengths[index] as number;
    const current = plan.at(-1);
    if (current && fits(current, length, tokenBudget)) {
      current.members.push(index);
      current.padding += current.time - length;
    } else plan.push({ time: length, members: [index], padding: 0 });
  }
  return plan.map(({ time, members }) => ({ time, members }));
}

function fits(
  {
    time,
    members,
    padding,
  }: { readonly time: number; readonly members: readonly number[]; readonly padding: number },
  length: number,
  tokenBudget: number,
): boolean {
  return padding + time - length <= callTokens && (members.length + 1) * time <= tokenBudget;
}
