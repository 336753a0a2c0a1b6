/**
 * Cuts a batch of sequences into micro-batches of few different shapes, since each shape needs a graph of its
 * own: sequences of similar length together, padded to a rounded length, within a budget of tokens.
 */
import type { SequenceShape } from "./decoder-graph.ts";

export interface MicroBatch {
  readonly shape: SequenceShape;
  /** Indexes into the batch; fewer than `shape.batch` where the last rows stay empty. */
  readonly members: readonly number[];
}

/** Plans micro-batches for sequences of the given lengths (tokens, at least 1); longest first, ties by index. */
export function planMicroBatches(lengths: readonly number[], limits: MicroBatchLimits): MicroBatch[] {
  const order = lengths
    .map((_, index) => index)
    .sort((a, b) => (lengths[b] as number) - (lengths[a] as number) || a - b);
  const plan: MicroBatch[] = [];
  for (let start = 0; start < order.length; ) {
    const time = Math.min(roundLength(lengths[order[start] as number] as number), limits.contextLength);
    const rows = Math.max(1, Math.floor(limits.tokenBudget / time));
    const members = order.slice(start, start + rows);
    plan.push({ shape: { batch: Math.min(rows, roundRows(members.length)), time }, members });
    start += members.length;
  }
  return plan;
}

export interface MicroBatchLimits {
  /** Most tokens of a micro-batch, padding included. */
  readonly tokenBudget: number;
  readonly contextLength: number;
}

/** The next length in steps of an eighth of its power of two, at least 16: padding stays below 12.5 % beyond 128. */
export function roundLength(length: number): number {
  const step = Math.max(16, 2 ** Math.floor(Math.log2(length)) / 8);
  return Math.ceil(length / step) * step;
}

/** 1, 2, 3, 4, 6, 8, 12, 16, 24, …: at most a third of the rows stay empty. */
function roundRows(rows: number): number {
  const power = 2 ** Math.floor(Math.log2(rows));
  if (rows === power) return rows;
  return rows <= power * 1.5 && power > 1 ? power * 1.5 : power * 2;
}
