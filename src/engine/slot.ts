/** One slot of the decoding cache: what sits there, what of it is cached, and whose rows it waits for. */
import type { CompletionJob } from "./completion-job.ts";
import { type Beginning, commonLength, type Neighbour } from "./shared-beginning.ts";

export class Slot<Entry> implements Neighbour {
  /** The tokens whose keys and values are cached. */
  cached: number[] = [];
  episode: string | undefined;
  entry: Entry | undefined;
  job: CompletionJob | undefined;
  /** What is copied as soon as another slot has computed it; until then nothing runs here. */
  awaited: Beginning<Slot<Entry>> | undefined;
  /** Call of the model when it was last in use. */
  usedAt = 0;

  get tokens(): readonly number[] | undefined {
    return this.job?.tokens;
  }

  /** Forgets what is cached beyond the beginning that it shares with a job; at least one token is left to run. */
  keepShared(job: CompletionJob): void {
    this.cached.length = commonLength(this.cached, job.tokens, job.tokens.length - 1);
  }
}

/** Rows that slots need: those cached and one that may be written over, or those that their jobs may come to need. */
export function reservedRows<Entry>(slots: readonly Slot<Entry>[]): number {
  return Math.max(0, ...slots.map(({ job, cached }) => job?.mostTokens ?? cached.length + 1));
}

export function longestIdle<Entry>(slots: readonly Slot<Entry>[]): Slot<Entry> | undefined {
  return slots.reduce<Slot<Entry> | undefined>(
    (best, slot) => (best === undefined || slot.usedAt < best.usedAt ? slot : best),
    undefined,
  );
}
