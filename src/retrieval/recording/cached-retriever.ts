/**
 * A retriever that remembers: answers of another retriever by query and k, the least recently used go first. Errors
 * are not remembered. A query that another call is asking at this moment is waited for and not asked again, since the
 * rollouts of a group often begin with the same search.
 */
import { assert } from "../../errors.ts";
import { untilAborted } from "../../shared/concurrency.ts";
import type { Retriever, ScoredPassage } from "../retriever.ts";
import { checkK } from "../retriever.ts";

export interface CachedRetriever extends Retriever {
  /** Queries that were answered without being asked, and queries that were asked; equal ones of a call count once. */
  readonly counts: { readonly hits: number; readonly misses: number };
}

type Answer = readonly ScoredPassage[];

/** Answers as `retriever` does, whose answers must depend on query and k alone. `maxEntries` is at least 1. */
export function cachedRetriever(
  retriever: Retriever,
  { maxEntries }: { readonly maxEntries: number },
): CachedRetriever {
  assert(Number.isInteger(maxEntries) && maxEntries >= 1, `maxEntries is at least 1, got ${maxEntries}`);
  const entries = new Map<string, Answer>();
  const inFlight = new Map<string, Promise<Answer>>();
  const counts = { hits: 0, misses: 0 };
  const keep = (key: string, answer: Answer): void => {
    entries.delete(key);
    entries.set(key, answer);
    const oldest = entries.size > maxEntries ? entries.keys().next().value : undefined;
    if (oldest !== undefined) entries.delete(oldest);
  };

  /** Asks for `queries` and lets other calls wait for them. */
  const ask = async (
    queries: readonly string[],
    k: number,
    signal?: AbortSignal,
  ): Promise<readonly Answer[]> => {
    if (queries.length === 0) return [];
    counts.misses += queries.length;
    const asking = retriever.retrieve(queries, k, signal);
    const keys = queries.map((query) => `${k} ${query}`);
    for (const [index, key] of keys.entries()) {
      const one = asking.then((answers) => answers[index] ?? []);
      // Who waits handles the error; when nobody does, the call itself still throws it.
      one.catch(() => undefined);
      inFlight.set(key, one);
    }
    try {
      const answers = await asking;
      for (const [index, key] of keys.entries()) keep(key, answers[index] ?? []);
      return answers;
    } finally {
      for (const key of keys) inFlight.delete(key);
    }
  };

  /** Answers of other calls; a query whose call failed or was aborted is asked on its own account. */
  const share = async (waiting: ReadonlyMap<string, Promise<Answer>>, k: number, signal?: AbortSignal) => {
    const answerOf = new Map<string, Answer>();
    for (const [query, promise] of waiting)
      try {
        answerOf.set(query, await untilAborted(promise, signal));
        counts.hits++;
      } catch {
        signal?.throwIfAborted();
      }
    const left = [...waiting.keys()].filter((query) => !answerOf.has(query));
    const answers = await ask(left, k, signal);
    for (const [index, query] of left.entries()) answerOf.set(query, answers[index] ?? []);
    return answerOf;
  };

  return {
    identity: retriever.identity,
    spent: retriever.spent,
    counts,
    retrieve: async (queries, k, signal) => {
      checkK(k);
      signal?.throwIfAborted();
      const answerOf = new Map<string, Answer>();
      const waiting = new Map<string, Promise<Answer>>();
      const missing: string[] = [];
      for (const query of new Set(queries)) {
        const key = `${k} ${query}`;
        const known = entries.get(key);
        const asked = inFlight.get(key);
        if (known !== undefined) {
          counts.hits++;
          answerOf.set(query, known);
          keep(key, known);
        } else if (asked !== undefined) waiting.set(query, asked);
        else missing.push(query);
      }
      const answers = await ask(missing, k, signal);
      for (const [index, query] of missing.entries()) answerOf.set(query, answers[index] ?? []);
      for (const [query, answer] of await share(waiting, k, signal)) answerOf.set(query, answer);
      signal?.throwIfAborted();
      return queries.map((query) => [...(answerOf.get(query) ?? [])]);
    },
  };
}
