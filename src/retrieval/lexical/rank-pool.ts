/**
 * Threads that rank many queries at once over an index in memory, whose arrays they share; the caller's thread ranks
 * with them. Queries go out in small pieces, so that threads end together; the order of the answers is that of the
 * queries. Threads start at the first call.
 */
import { setImmediate } from "node:timers/promises";
import type { Worker } from "node:worker_threads";
import { RetrieverError } from "../../errors.ts";
import type { Bm25Options } from "./bm25-options.ts";
import type { MemoryPostings } from "./memory-postings.ts";
import { startThread } from "./start-thread.ts";
import type { Ranking } from "./top-k.ts";

/** What threads need of an index; all arrays lie in shared memory. */
export interface SharedIndex {
  readonly options: Bm25Options;
  readonly passageCount: number;
  readonly vocabulary: Uint8Array;
  readonly vocabularyStarts: Uint32Array;
  readonly postings: MemoryPostings;
}

export interface RankRequest {
  readonly number: number;
  readonly queries: readonly string[];
  readonly k: number;
}

/** The rankings of a piece one after the other: an array for each of them would cost more to send than to make. */
export interface RankAnswer {
  readonly number: number;
  /** (queries) How long each ranking is. */
  readonly lengths: Uint32Array;
  readonly positions: Uint32Array;
  readonly scores: Float64Array;
}

/** Queries sent to a thread at a time; calls of fewer are not worth a message. */
export const QUERIES_PER_PIECE = 16;
/** Pieces that a thread has at a time, so that it need not wait for the next one. */
const PIECES_AHEAD = 2;
/** Queries that the caller's thread ranks before it looks at answers and other work. */
const QUERIES_PER_TURN = 8;

export interface RankCall {
  readonly k: number;
  readonly signal: AbortSignal | undefined;
  /** Ranks for one query on the caller's thread. */
  search(query: string, k: number): Ranking;
}

interface Waiting {
  readonly resolve: (rankings: readonly Ranking[]) => void;
  readonly reject: (error: Error) => void;
}

export class RankPool {
  readonly #index: SharedIndex;
  readonly #others: number;
  #workers: readonly Worker[] = [];
  readonly #waiting = new Map<number, Waiting>();
  #sent = 0;
  /** Why nothing is answered any more. */
  #failure: Error | undefined;

  /** `threads` counts the caller's too; at least 2. */
  constructor(index: SharedIndex, threads: number) {
    this.#index = index;
    this.#others = threads - 1;
  }

  async rank(queries: readonly string[], { k, signal, search }: RankCall): Promise<Ranking[]> {
    if (this.#failure !== undefined) throw this.#failure;
    if (this.#workers.length === 0)
      this.#workers = Array.from({ length: this.#others }, () => this.#start(this.#index));
    const results: Ranking[] = [];
    let next = 0;
    const drain = async (worker: Worker): Promise<void> => {
      while (next < queries.length) {
        signal?.throwIfAborted();
        const start = next;
        next += QUERIES_PER_PIECE;
        const rankings = await this.#ask(worker, queries.slice(start, start + QUERIES_PER_PIECE), k);
        for (const [i, ranking] of rankings.entries()) results[start + i] = ranking;
      }
    };
    const own = async (): Promise<void> => {
      while (next < queries.length) {
        signal?.throwIfAborted();
        const end = Math.min(next + QUERIES_PER_TURN, queries.length);
        for (; next < end; next++) results[next] = search(queries[next] as string, k);
        await setImmediate();
      }
    };
    const ahead = Array.from({ length: PIECES_AHEAD }, () => this.#workers.map(drain));
    await Promise.all([...ahead.flat(), own()]);
    signal?.throwIfAborted();
    return results;
  }

  async close(): Promise<void> {
    this.#fail(new RetrieverError("the index was closed; open it again"));
    await Promise.all(this.#workers.map((worker) => worker.terminate()));
  }

  #start(workerData: SharedIndex): Worker {
    const worker = startThread("rank-worker", workerData);
    worker.on("message", (answer: RankAnswer) => {
      this.#waiting.get(answer.number)?.resolve(rankingsOf(answer));
      this.#waiting.delete(answer.number);
      if (this.#waiting.size === 0) for (const idle of this.#workers) idle.unref();
    });
    worker.on("error", (cause) =>
      this.#fail(new RetrieverError(`a search thread failed: ${cause.message}`, { cause })),
    );
    worker.on("exit", (code) => this.#fail(new RetrieverError(`a search thread ended with code ${code}`)));
    worker.unref();
    return worker;
  }

  #ask(worker: Worker, queries: readonly string[], k: number): Promise<readonly Ranking[]> {
    return new Promise((resolve, reject) => {
      if (this.#failure !== undefined) {
        reject(this.#failure);
        return;
      }
      const number = this.#sent++;
      this.#waiting.set(number, { resolve, reject });
      // A thread keeps the process alive only while somebody waits for it.
      worker.ref();
      worker.postMessage({ number, queries, k } satisfies RankRequest);
    });
  }

  #fail(error: Error): void {
    this.#failure ??= error;
    for (const { reject } of this.#waiting.values()) reject(this.#failure);
    this.#waiting.clear();
  }
}

function rankingsOf({ lengths, positions, scores }: RankAnswer): Ranking[] {
  let end = 0;
  return Array.from(lengths, (length) => {
    const from = end;
    end += length;
    return { positions: positions.subarray(from, end), scores: scores.subarray(from, end) };
  });
}
