/**
 * A retriever for tests that answers from a script, records every call, and can fail on demand. It ranks
 * nothing: passages come back in the order of the script, with scores k, k - 1, ...
 */
import { corpusHash } from "../corpus/corpus-hash.ts";
import type { Passage } from "../corpus/passage.ts";
import { RetrieverError } from "../errors.ts";
import { sha256 } from "../shared/hash.ts";
import type { Retriever, ScoredPassage } from "./retriever.ts";

export interface RetrieveCall {
  readonly queries: readonly string[];
  readonly k: number;
}

export interface ScriptedRetriever extends Retriever {
  /** Every call so far, failed ones included. */
  readonly calls: readonly RetrieveCall[];
}

/** What a query is answered with; an error is thrown instead. */
export type RetrieverScript = ReadonlyMap<string, readonly Passage[] | Error>;

/**
 * A retriever that answers each query as `script` says, as often as it is asked. A query that the script does not
 * hold, and the call number `failAtCall` (from 1), throw `RetrieverError`.
 */
export function scriptedRetriever(
  script: RetrieverScript,
  options: { readonly failAtCall?: number } = {},
): ScriptedRetriever {
  const calls: RetrieveCall[] = [];
  const answer = (query: string, k: number): ScoredPassage[] => {
    const passages = script.get(query);
    if (passages instanceof Error) throw passages;
    if (passages === undefined)
      throw new RetrieverError(`the script holds no answer to ${JSON.stringify(query)}`);
    return passages.slice(0, k).map((passage, rank) => ({ passage, score: k - rank }));
  };
  return {
    calls,
    identity: {
      method: "scripted",
      corpusHash: corpusHash(
        [...script.values()].flatMap((passages) => (passages instanceof Error ? [] : passages)),
      ),
      indexHash: sha256(JSON.stringify([...script.keys()])),
      parameters: {},
    },
    retrieve: async (queries, k, signal) => {
      signal?.throwIfAborted();
      calls.push({ queries: [...queries], k });
      if (calls.length === options.failAtCall)
        throw new RetrieverError(`call ${calls.length} fails as scripted`);
      return queries.map((query) => answer(query, k));
    },
  };
}
