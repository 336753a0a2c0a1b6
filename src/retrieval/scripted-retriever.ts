/**
 * A retriever that finds what it was told to: for tests and speed checks of the rooms below. It records its
 * queries; an answer that is an error is thrown. It ranks nothing: scores fall from 1 by place in the answer.
 */
import type { Passage } from "../corpus/passage.ts";
import type { Retriever } from "./retriever.ts";

export interface ScriptedRetriever extends Retriever {
  /** Every query, in the order it came. */
  readonly queries: readonly string[];
}

/** `answer` gives the passages of a query, best first; more than `k` are cut off. */
export function scriptedRetriever(answer: (query: string) => readonly Passage[] | Error): ScriptedRetriever {
  const seen: string[] = [];
  const find = (query: string, k: number) => {
    seen.push(query);
    const found = answer(query);
    if (found instanceof Error) throw found;
    return found.slice(0, k).map((passage, i) => ({ passage, score: 1 / (i + 1) }));
  };
  return {
    identity: { method: "scripted", corpusHash: "script", indexHash: "script", parameters: {} },
    queries: seen,
    retrieve: async (queries, k, signal) => {
      signal?.throwIfAborted();
      return queries.map((query) => find(query, k));
    },
  };
}
