/**
 * BM25 over an index in memory or on disk: the query's terms are looked up, their entries ranked. The formulas are
 * in `bm25-options.ts`, the ranking in `ranking.ts`. Passages are fetched for the best k only.
 */
import { setImmediate } from "node:timers/promises";
import type { Passage } from "../../corpus/passage.ts";
import { RetrieverError } from "../../errors.ts";
import { canonicalJson, sha256 } from "../../shared/hash.ts";
import type { PassageStore } from "../passage-store.ts";
import type { Retriever, RetrieverIdentity, ScoredPassage } from "../retriever.ts";
import type { Bm25Options } from "./bm25-options.ts";
import { namedOptions } from "./fold.ts";
import { QueryTerms } from "./query-terms.ts";
import { QUERIES_FOR_ONE, type RankPool } from "./rank-pool.ts";
import { Ranker } from "./ranking.ts";
import { SumKernel } from "./sum-kernel.ts";
import type { PostingStore } from "./term-entries.ts";
import type { Ranking } from "./top-k.ts";
import type { Vocabulary } from "./vocabulary.ts";

/** All that an index is made of. */
export interface Bm25Parts {
  readonly options: Bm25Options;
  readonly corpusHash: string;
  readonly passages: PassageStore;
  readonly vocabulary: Vocabulary;
  readonly postings: PostingStore;
  /** The position of the passage with this id, or undefined. */
  readonly positionOf: (id: string) => number | undefined;
  /** Threads that answer many queries at once; absent when there is one thread. */
  readonly pool?: RankPool;
  /** Closes files; absent when there are none. */
  readonly close?: () => Promise<void>;
}

/** Raised when the layout of an index changes: older indexes must be built again. */
export const BM25_VERSION = 2;

/** How many queries are answered before other work gets a turn, so that an abort is noticed. */
const QUERIES_PER_TURN = 64;

export class Bm25Index implements Retriever {
  readonly identity: RetrieverIdentity;
  readonly parts: Bm25Parts;
  readonly #terms: QueryTerms;
  readonly #ranker: Ranker;

  constructor(parts: Bm25Parts) {
    this.parts = parts;
    this.identity = identityOf(parts);
    this.#terms = new QueryTerms(parts.options, parts.vocabulary);
    this.#ranker = new Ranker(parts.passages.count, { kernel: new SumKernel(parts.postings.memory) });
  }

  get passages(): PassageStore {
    return this.parts.passages;
  }

  /** The passage with this id, or undefined. */
  passageById(id: string): Passage | undefined {
    const position = this.parts.positionOf(id);
    return position === undefined ? undefined : this.parts.passages.get(position);
  }

  async retrieve(queries: readonly string[], k: number, signal?: AbortSignal): Promise<ScoredPassage[][]> {
    const { passages } = this.parts;
    const rankings = await this.rank(queries, k, signal);
    return rankings.map(({ positions, scores }) =>
      Array.from(positions, (position, rank) => ({
        passage: passages.get(position),
        score: scores[rank] as number,
      })),
    );
  }

  /** Like `retrieve`, with positions in the corpus in place of passages: for fusion and for measurements. */
  async rank(queries: readonly string[], k: number, signal?: AbortSignal): Promise<Ranking[]> {
    if (!Number.isInteger(k) || k < 1)
      throw new RetrieverError(`k must be an integer of at least 1, got ${k}`);
    signal?.throwIfAborted();
    const { pool } = this.parts;
    if (pool !== undefined && queries.length > QUERIES_FOR_ONE)
      return await pool.rank(queries, { k, signal, search: (query) => this.#search(query, k) });
    const rankings: Ranking[] = [];
    for (const query of queries) {
      signal?.throwIfAborted();
      rankings.push(this.#search(query, k));
      if (rankings.length % QUERIES_PER_TURN === 0) await setImmediate();
    }
    signal?.throwIfAborted();
    return rankings;
  }

  /** A sentence for people about a query that is searched for in titles alone; undefined for all others. */
  remarkOn(query: string): string | undefined {
    if (!this.#terms.hasOnlyStopWords(query)) return undefined;
    const { titleWeight } = this.parts.options;
    return `the query has only stop words, which are indexed ${titleWeight > 0 ? "in titles alone" : "nowhere"}; to search the texts for them, build an index with --set stopWords=false`;
  }

  /** Closes the files and threads of the index; it answers nothing afterwards. */
  async close(): Promise<void> {
    await this.parts.pool?.close();
    await this.parts.close?.();
  }

  #search(query: string, k: number): Ranking {
    const { postings } = this.parts;
    const terms = this.#terms.weightsOf(query).map(([term, weight]) => postings.entriesOf(term, weight));
    return this.#ranker.rank(terms, k);
  }
}

function identityOf({ options, corpusHash }: Bm25Parts): RetrieverIdentity {
  const { fuzzy, ...plain } = options;
  const hashed = { method: "bm25", version: BM25_VERSION, options: namedOptions(options), corpusHash };
  return {
    method: "bm25",
    corpusHash,
    indexHash: sha256(canonicalJson(hashed)),
    parameters: { ...namedOptions(plain), fuzzy: fuzzy === false ? false : canonicalJson(fuzzy) },
  };
}
