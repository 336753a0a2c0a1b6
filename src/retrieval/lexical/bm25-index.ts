/**
 * BM25 in the variant of Lucene (Robertson and Zaragoza 2009; idf as in Lucene 4 and later):
 *   score(q, p) = sum over terms t of q:  n_q(t) idf(t) f / (f + k1 (1 - b + b |p| / mean length)),
 *   idf(t) = ln(1 + (N - n_t + 0.5) / (n_t + 0.5)),
 * where f is the frequency of t in p. Everything but n_q is an "impact", computed once and kept as a 32-bit float.
 * Exhaustive scoring: no pruning, which measured slower up to some 10^5 passages.
 */
import { setImmediate } from "node:timers/promises";
import { z } from "zod";
import { RetrieverError } from "../../errors.ts";
import { canonicalJson, sha256 } from "../../shared/hash.ts";
import type { PassageStore } from "../passage-store.ts";
import type { Retriever, RetrieverIdentity, ScoredPassage } from "../retriever.ts";
import { analysisOptionsSchema } from "./analyze.ts";
import { type CloseTerm, closestTerms, fuzzyOptionsSchema } from "./fuzzy.ts";
import { Ranker, type TermEntries } from "./ranking.ts";
import { QueryVocabulary } from "./vocabulary.ts";

export const bm25OptionsSchema = z.strictObject({
  k1: z.number().min(0).max(10).default(1.2).describe("How soon more occurrences of a term stop to matter."),
  b: z
    .number()
    .min(0)
    .max(1)
    .default(0.75)
    .describe("How much long passages are held back: 0 not, 1 in proportion to length."),
  titleWeight: z
    .int()
    .min(0)
    .max(10)
    .default(3)
    .describe("How many times a title counts; 0 leaves titles out."),
  ...analysisOptionsSchema.shape,
  fuzzy: z
    .union([z.literal(false), fuzzyOptionsSchema])
    .default(false)
    .describe("Let close terms stand in for query terms that no passage holds (misspelt names)."),
});
export type Bm25Options = z.output<typeof bm25OptionsSchema>;

/** All that an index is made of; see `Postings` for the layout of the arrays. */
export interface Bm25Parts {
  readonly options: Bm25Options;
  readonly corpusHash: string;
  readonly passages: PassageStore;
  readonly vocabulary: readonly string[];
  /** (terms + 1) */
  readonly starts: Uint32Array;
  /** (entries) */
  readonly postings: Uint32Array;
  /** (entries) */
  readonly impacts: Float32Array;
}

/** Raised when the layout of an index or the analysis of text changes: older indexes must be built again. */
export const BM25_VERSION = 1;

/** How many queries are answered before other work gets a turn, so that an abort is noticed. */
const QUERIES_PER_TURN = 64;

export class Bm25Index implements Retriever {
  readonly identity: RetrieverIdentity;
  readonly parts: Bm25Parts;
  readonly #vocabulary: QueryVocabulary;
  readonly #ranker: Ranker;
  #closest: ((word: string) => CloseTerm[]) | undefined;

  constructor(parts: Bm25Parts) {
    this.parts = parts;
    this.identity = identityOf(parts);
    this.#vocabulary = new QueryVocabulary(parts.options, parts.vocabulary);
    this.#ranker = new Ranker(parts.passages.count);
  }

  async retrieve(queries: readonly string[], k: number, signal?: AbortSignal): Promise<ScoredPassage[][]> {
    if (!Number.isInteger(k) || k < 1)
      throw new RetrieverError(`k must be an integer of at least 1, got ${k}`);
    const results: ScoredPassage[][] = [];
    for (const query of queries) {
      signal?.throwIfAborted();
      results.push(this.#search(query, k));
      if (results.length % QUERIES_PER_TURN === 0) await setImmediate();
    }
    signal?.throwIfAborted();
    return results;
  }

  #search(query: string, k: number): ScoredPassage[] {
    const ranking = this.#ranker.rank(this.#entriesOf(query), k);
    return ranking.map(({ position, score }) => ({ passage: this.parts.passages.get(position), score }));
  }

  /** The terms of the query in the order of the vocabulary, so that a score does not depend on word order. */
  #entriesOf(query: string): TermEntries[] {
    const { starts, postings, impacts } = this.parts;
    return [...this.#weightsOf(query)]
      .sort(([a], [b]) => a - b)
      .map(([term, weight]) => ({
        passages: postings,
        impacts,
        from: starts[term] as number,
        to: starts[term + 1] as number,
        weight,
      }));
  }

  /** How much each term of the vocabulary counts in the query. Stop words count in a query of nothing else. */
  #weightsOf(query: string): Map<number, number> {
    const words = this.#vocabulary.wordsOf(query);
    const content = words.filter(({ isStopWord }) => !isStopWord);
    const weights = new Map<number, number>();
    const add = (term: number, weight: number): void => {
      weights.set(term, (weights.get(term) ?? 0) + weight);
    };
    for (const word of content.length > 0 ? content : words)
      if (word.number !== undefined) add(word.number, 1);
      else for (const { term, weight } of this.#standIns(word.term)) add(term, weight);
    return weights;
  }

  #standIns(word: string): { readonly term: number; readonly weight: number }[] {
    const { fuzzy } = this.parts.options;
    if (fuzzy === false) return [];
    this.#closest ??= closestTerms(this.parts.vocabulary, fuzzy);
    return this.#closest(word).map(({ term, overlap }) => ({ term, weight: fuzzy.weight * overlap }));
  }
}

function identityOf({ options, corpusHash }: Bm25Parts): RetrieverIdentity {
  const { fuzzy, ...plain } = options;
  return {
    method: "bm25",
    corpusHash,
    indexHash: sha256(canonicalJson({ method: "bm25", version: BM25_VERSION, options, corpusHash })),
    parameters: { ...plain, fuzzy: fuzzy === false ? false : canonicalJson(fuzzy) },
  };
}
