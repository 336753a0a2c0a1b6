/**
 * Threads that rank many queries at once over an index in memory, whose arrays they share; the caller's thread ranks
 * with them. Each takes the next query that nobody has taken, by a counter in shared memory, and sends what it found
 * in one message when none are left: a thread that starts, is busy or slow (V8 compiles its code during the first
 * calls) holds nobody up for longer than one query. Threads start at the first call.
 */
import { setImmediate } from "node:timers/promises";
import type { Worker } from "node:worker_threads";
import { RetrieverError } from "../../errors.ts";
import { startThread } from "../../shared/start-thread.ts";
import type { Bm25Options } from "./bm25-options.ts";
import type { MemoryPostings } from "./memory-postings.ts";
import type { Ranking } from "./top-k.ts";

/** What threads need of an index; all arrays lie in shared memory. */
export interface SharedIndex {
  readonly options: Bm25Options;
  readonly passageCount: number;
  readonly vocabulary: Uint8Array;
  readonly vocabularyStarts: Uint32Array;
  readonly postings: MemoryPostings;
}

export interface RankThread extends SharedIndex {
  /** Its number; 0 is the caller's. */
  readonly thread: number;
}

export interface RankRequest {
  readonly number: number;
  readonly queries: readonly string[];
  readonly k: number;
  /** (1) How many queries are taken; in shared memory. */
  readonly taken: Int32Array;
}

/** The rankings of a thread one after the other: an array for each of them would cost more to send than to make. */
export interface RankAnswer {
  readonly number: number;
  /** (rankings) The places of their queries in the request. */
  readonly places: Uint32Array;
  /** (rankings) */
  readonly lengths: Uint32Array;
  readonly positions: Uint32Array;
  readonly scores: Float64Array;
}

/** Calls of so many queries are not worth a message yet. */
export const QUERIES_FOR_ONE = 16;
/** Queries that the caller's thread ranks before it looks at other work. */
const QUERIES_PER_TURN = 8;

export interface RankCall {
  readonly k: number;
  readonly signal: AbortSignal | undefined;
  /** Ranks for one query on the caller's thread. */
  search(query: string, k: number): Ranking;
}

/** A call that is not over. */
interface Pending {
  readonly rankings: Ranking[];
  /** Queries that have no ranking yet. */
  left: number;
  /** Ends the wait for other threads; absent until then. */
  settle?: () => void;
}

/** The place of the next query, which is taken by that; none is left when it is not below their number. */
export function takeNext(taken: Int32Array): number {
  return Atomics.add(taken, 0, 1);
}

export class RankPool {
  readonly #index: SharedIndex;
  readonly #others: number;
  #workers: readonly Worker[] = [];
  readonly #pending = new Map<number, Pending>();
  /** Calls that wait for other threads. */
  #waiting = 0;
  #sent = 0;
  /** Why nothing is answered any more. */
  #failure: Error | undefined;

  /** `threads` counts the caller's too; at least 2. */
  constructor(index: SharedIndex, threads: number) {
    this.#index = index;
    this.#others = threads - 1;
  }

  async rank(queries: readonly string[], { k, signal, search }: RankCall): Promise<Ranking[]> {
    this.#check(signal);
    if (this.#workers.length === 0)
      this.#workers = Array.from({ length: this.#others }, (_, i) =>
        this.#start({ ...this.#index, thread: i + 1 }),
      );
    const number = this.#sent++;
    const taken = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
    const call: Pending = { rankings: new Array<Ranking>(queries.length), left: queries.length };
    this.#pending.set(number, call);
    for (const worker of this.#workers)
      worker.postMessage({ number, queries, k, taken } satisfies RankRequest);
    try {
      let own = 0;
      for (let place = takeNext(taken); place < queries.length; place = takeNext(taken)) {
        call.rankings[place] = search(queries[place] as string, k);
        call.left--;
        if (++own % QUERIES_PER_TURN === 0) await setImmediate();
        this.#check(signal);
      }
      await this.#waitFor(call);
      this.#check(signal);
      return call.rankings;
    } finally {
      Atomics.store(taken, 0, queries.length);
      this.#pending.delete(number);
    }
  }

  async close(): Promise<void> {
    this.#fail(new RetrieverError("the index was closed; open it again"));
    await Promise.all(this.#workers.map((worker) => worker.terminate()));
  }

  #start(workerData: RankThread): Worker {
    const worker = startThread("rank-worker", import.meta.url, workerData);
    worker.on("message", (answer: RankAnswer) => this.#receive(answer));
    worker.on("error", (cause) =>
      this.#fail(new RetrieverError(`a search thread failed: ${cause.message}`, { cause })),
    );
    worker.on("exit", (code) => this.#fail(new RetrieverError(`a search thread ended with code ${code}`)));
    worker.unref();
    return worker;
  }

  #receive({ number, places, lengths, positions, scores }: RankAnswer): void {
    const call = this.#pending.get(number);
    if (call === undefined) return;
    let end = 0;
    for (const [i, place] of places.entries()) {
      const from = end;
      end += lengths[i] as number;
      call.rankings[place] = {
        positions: positions.subarray(from, end),
        scores: scores.subarray(from, end),
      };
    }
    call.left -= places.length;
    if (call.left === 0) call.settle?.();
  }

  /** Until other threads have ranked what they took. They keep the process alive only meanwhile. */
  async #waitFor(call: Pending): Promise<void> {
    if (call.left === 0) return;
    if (this.#waiting++ === 0) for (const worker of this.#workers) worker.ref();
    await new Promise<void>((resolve) => {
      call.settle = resolve;
    });
    if (--this.#waiting === 0) for (const worker of this.#workers) worker.unref();
  }

  #fail(error: Error): void {
    this.#failure ??= error;
    for (const { settle } of this.#pending.values()) settle?.();
  }

  /** Throws where there is no reason to go on. */
  #check(signal: AbortSignal | undefined): void {
    if (this.#failure !== undefined) throw this.#failure;
    signal?.throwIfAborted();
  }
}
