/**
 * Queries of many callers in few calls. While a connection is free a caller's queries are sent as they are; once all are
 * busy, what waits is sent together, up to the batch size, as soon as one is free. Thousands of episodes with a query each
 * then cost a server that looks through its whole index at every call (Search-R1's) tens of passes and not thousands.
 */
import { onAbort } from "../../shared/concurrency.ts";
import type { ScoredPassage } from "../retriever.ts";

/** One list for each of `queries`, distinct and at most `batchSize`, in order. */
export type BatchCall = (
  queries: readonly string[],
  k: number,
  signal: AbortSignal,
) => Promise<readonly ScoredPassage[][]>;

interface Waiting {
  readonly query: string;
  readonly k: number;
  /** Who asked; aborted when one of its queries failed. */
  readonly caller: AbortController;
  readonly resolve: (found: ScoredPassage[]) => void;
  readonly reject: (error: unknown) => void;
}

export class QueryGatherer {
  readonly #call: BatchCall;
  readonly #limits: { readonly batchSize: number; readonly concurrency: number };
  #running = 0;
  #queue: Waiting[] = [];

  constructor(call: BatchCall, limits: { readonly batchSize: number; readonly concurrency: number }) {
    this.#call = call;
    this.#limits = limits;
  }

  /** Answers in the order of `queries`. When one call fails, what is left of this caller's queries is not sent. */
  async ask(
    queries: readonly string[],
    k: number,
    signal: AbortSignal | undefined,
  ): Promise<ScoredPassage[][]> {
    signal?.throwIfAborted();
    const caller = new AbortController();
    const forget = onAbort(signal, () => caller.abort(signal?.reason));
    try {
      const answers = queries.map(
        (query) =>
          new Promise<ScoredPassage[]>((resolve, reject) => {
            this.#queue.push({ query, k, caller, resolve, reject });
          }),
      );
      onAbort(caller.signal, () => this.#drop(caller));
      this.#send();
      return await Promise.all(answers);
    } catch (error) {
      caller.abort(error);
      throw error;
    } finally {
      forget();
    }
  }

  #drop(caller: AbortController): void {
    const [gone, left]: [Waiting[], Waiting[]] = [[], []];
    for (const waiting of this.#queue) (waiting.caller === caller ? gone : left).push(waiting);
    this.#queue = left;
    for (const { reject } of gone) reject(caller.signal.reason);
  }

  #send(): void {
    while (this.#running < this.#limits.concurrency && this.#queue.length > 0) {
      const batch = this.#take();
      this.#running++;
      void this.#carryOut(batch).finally(() => {
        this.#running--;
        this.#send();
      });
    }
  }

  /** What waits longest and whatever else asks for as many passages, until the batch is full of distinct queries. */
  #take(): Waiting[] {
    const { k } = this.#queue[0] as Waiting;
    const distinct = new Set<string>();
    const [batch, left]: [Waiting[], Waiting[]] = [[], []];
    for (const waiting of this.#queue) {
      const fits = distinct.has(waiting.query) || distinct.size < this.#limits.batchSize;
      if (waiting.k !== k || !fits) left.push(waiting);
      else {
        distinct.add(waiting.query);
        batch.push(waiting);
      }
    }
    this.#queue = left;
    return batch;
  }

  /** One call; it is given up when nobody waits for it any more. */
  async #carryOut(batch: readonly Waiting[]): Promise<void> {
    const call = new AbortController();
    let left = batch.length;
    const forgets = batch.map(({ caller: { signal }, reject }) =>
      onAbort(signal, () => {
        reject(signal.reason);
        if (--left === 0) call.abort(signal.reason);
      }),
    );
    const queries = [...new Set(batch.map(({ query }) => query))];
    try {
      const found = await this.#call(queries, (batch[0] as Waiting).k, call.signal);
      const answerOf = new Map(queries.map((query, index) => [query, found[index] ?? []]));
      for (const { query, resolve } of batch) resolve([...(answerOf.get(query) ?? [])]);
    } catch (error) {
      for (const { reject } of batch) reject(error);
      // At once, so that nothing more of theirs is sent.
      for (const { caller } of batch) caller.abort(error);
    } finally {
      for (const forget of forgets) forget();
    }
  }
}
