/**
 * Threads that rank many queries at once over an index in memory, whose arrays they share. Queries go out in small
 * pieces, so that threads end together; the order of the answers is that of the queries. Threads start at the first call.
 */
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

export interface RankAnswer {
  readonly number: number;
  readonly rankings: readonly Ranking[];
}

/** Queries sent to a thread at a time; calls of fewer are not worth a message. */
export const QUERIES_PER_PIECE = 16;

interface Waiting {
  readonly resolve: (rankings: readonly Ranking[]) => void;
  readonly reject: (error: Error) => void;
}

export class RankPool {
  readonly #index: SharedIndex;
  readonly #threads: number;
  #workers: readonly Worker[] = [];
  readonly #waiting = new Map<number, Waiting>();
  #sent = 0;
  /** Why nothing is answered any more. */
  #failure: Error | undefined;

  constructor(index: SharedIndex, threads: number) {
    this.#index = index;
    this.#threads = threads;
  }

  async rank(queries: readonly string[], k: number, signal?: AbortSignal): Promise<Ranking[]> {
    if (this.#failure !== undefined) throw this.#failure;
    if (this.#workers.length === 0)
      this.#workers = Array.from({ length: this.#threads }, () => this.#start(this.#index));
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
    await Promise.all(this.#workers.map(drain));
    signal?.throwIfAborted();
    return results;
  }

  async close(): Promise<void> {
    this.#fail(new RetrieverError("the index was closed; open it again"));
    await Promise.all(this.#workers.map((worker) => worker.terminate()));
  }

  #start(workerData: SharedIndex): Worker {
    const worker = startThread("rank-worker", workerData);
    worker.on("message", ({ number, rankings }: RankAnswer) => {
      this.#waiting.get(number)?.resolve(rankings);
      this.#waiting.delete(number);
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
