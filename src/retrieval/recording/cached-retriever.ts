/**
 * A retriever that remembers: answers of another retriever by query and k, the least recently used go first. Errors
 * are not remembered. Only the missing queries of a call are asked, and each of them once.
 */
import { assert } from "../../errors.ts";
import { checkK } from "../remote/world.ts";
import type { Retriever, ScoredPassage } from "../retriever.ts";

export interface CachedRetriever extends Retriever {
  /** Queries answered from memory, and queries that were asked. */
  readonly counts: { readonly hits: number; readonly misses: number };
}

/** Answers as `retriever` does, whose answers must depend on query and k alone. `maxEntries` is at least 1. */
export function cachedRetriever(
  retriever: Retriever,
  { maxEntries }: { readonly maxEntries: number },
): CachedRetriever {
  assert(Number.isInteger(maxEntries) && maxEntries >= 1, `maxEntries is at least 1, got ${maxEntries}`);
  const entries = new Map<string, readonly ScoredPassage[]>();
  const counts = { hits: 0, misses: 0 };
  const keep = (key: string, answer: readonly ScoredPassage[]): void => {
    entries.delete(key);
    entries.set(key, answer);
    const oldest = entries.size > maxEntries ? entries.keys().next().value : undefined;
    if (oldest !== undefined) entries.delete(oldest);
  };
  return {
    identity: retriever.identity,
    counts,
    retrieve: async (queries, k, signal) => {
      checkK(k);
      signal?.throwIfAborted();
      const answerOf = new Map<string, readonly ScoredPassage[]>();
      for (const query of queries) {
        const known = entries.get(`${k} ${query}`);
        if (known === undefined) continue;
        counts.hits++;
        answerOf.set(query, known);
        keep(`${k} ${query}`, known);
      }
      const missing = [...new Set(queries)].filter((query) => !answerOf.has(query));
      counts.misses += missing.length;
      const answers = missing.length === 0 ? [] : await retriever.retrieve(missing, k, signal);
      for (const [index, query] of missing.entries()) {
        const answer = answers[index] ?? [];
        answerOf.set(query, answer);
        keep(`${k} ${query}`, answer);
      }
      return queries.map((query) => [...(answerOf.get(query) ?? [])]);
    },
  };
}
