/** Cuts a batch of sequences into micro-batches within a budget of tokens: sequences of similar length together, so that little is padded. */

export interface MicroBatch {
  /** Tokens of the longest sequence; the others are padded to it. */
  readonly time: number;
  /** Indexes into the batch. */
  readonly members: readonly number[];
}

/** The largest share of a micro-batch that may be padding. */
export const mostPadding = 0.15;

/**
 * Plans micro-batches for sequences of the given lengths (tokens, at least 1): longest first, ties by index; each
 * of at most `tokenBudget` tokens, padding included, but always of at least one sequence, and padded by at most
 * `mostPadding` of its tokens.
 */
export function planMicroBatches(lengths: readonly number[], tokenBudget: number): MicroBatch[] {
  const order = lengths
    .map((_, index) => index)
    .sort((a, b) => (lengths[b] as number) - (lengths[a] as number) || a - b);
  const plan: { time: number; members: number[]; tokens: number }[] = [];
  for (const index of order) {
    const length = lengths[index] as number;
    const current = plan.at(-1);
    const padded = current ? (current.members.length + 1) * current.time : 0;
    if (current && padded <= tokenBudget && current.tokens + length >= (1 - mostPadding) * padded) {
      current.members.push(index);
      current.tokens += length;
    } else plan.push({ time: length, members: [index], tokens: length });
  }
  return plan.map(({ time, members }) => ({ time, members }));
}

/** Tokens of a micro-batch, padding included. */
export function paddedTokens({ time, members }: MicroBatch): number {
  return time * members.length;
}

/**
 * The dearest first, each for the lane that has the least to do so far; ties by index. A lane has its own in the order of the
 * plan, in which those of one form mostly follow one another. The same for the same batch, so that sums are too.
 */
export function shareOut(
  plan: readonly MicroBatch[],
  lanes: number,
  costOf: (microBatch: MicroBatch) => number,
): MicroBatch[][] {
  if (lanes === 1) return [[...plan]];
  const shares = Array.from({ length: lanes }, () => ({ cost: 0, members: new Set<MicroBatch>() }));
  const dearestFirst = plan
    .map((microBatch) => ({ microBatch, cost: costOf(microBatch) }))
    .sort((a, b) => b.cost - a.cost);
  for (const { microBatch, cost } of dearestFirst) {
    const least = shares.reduce((a, b) => (b.cost < a.cost ? b : a));
    least.cost += cost;
    least.members.add(microBatch);
  }
  return shares.map(({ members }) => plan.filter((microBatch) => members.has(microBatch)));
}
