/**
 * The retriever contract: ranks passages for a query. BM25, dense, hybrid, remote servers and scripted
 * retrievers implement it and pass the suite in `retriever.suite.ts`.
 */
import type { Passage } from "../corpus/passage.ts";
import { RetrieverError } from "../errors.ts";
import type { Spending } from "../shared/budget.ts";

/** What a result depends on; written into every result file so that unequal runs are not compared. */
export interface RetrieverIdentity {
  /** How passages are ranked, such as `bm25`. */
  readonly method: string;
  /** SHA-256 of the corpus in canonical form. */
  readonly corpusHash: string;
  /** SHA-256 of the index, or of what defines it. */
  readonly indexHash: string;
  readonly parameters: Readonly<Record<string, string | number | boolean>>;
}

export interface ScoredPassage {
  readonly passage: Passage;
  /** Higher is better; comparable within one answer only. */
  readonly score: number;
}

export interface Retriever {
  readonly identity: RetrieverIdentity;
  /**
   * The best `k` passages for each query, best first, aligned with `queries`; fewer when fewer match.
   * Equal scores are ordered by position in the corpus. `k` is an integer of at least 1.
   * Throws `RetrieverError` when it cannot answer, and the signal's reason when aborted.
   */
  retrieve(queries: readonly string[], k: number, signal?: AbortSignal): Promise<ScoredPassage[][]>;
  /** What its answers have cost up to now; absent where they cost nothing but time. */
  readonly spent?: (() => Spending) | undefined;
}

/** Throws `RetrieverError` unless `k` is an integer of at least 1. */
export function checkK(k: number): void {
  if (!Number.isInteger(k) || k < 1)
    throw new RetrieverError(`k must be an integer of at least 1, got ${String(k)}`);
}
