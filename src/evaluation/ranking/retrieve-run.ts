/** The results of a retriever for many queries as a run, one query after the other, asked in batches. */
import type { QueryText } from "../../corpus/read-queries.ts";
import type { Retriever } from "../../retrieval/retriever.ts";
import type { RunEntry } from "./ranking.ts";
import type { QueryResults } from "./run-file.ts";

/** Queries of one request: enough for what is faster in bulk, few enough for progress and for limits of servers. */
const batchSize = 64;

export interface RetrieveRunOptions {
  readonly k: number;
  readonly signal?: AbortSignal;
}

/** The best `k` passages for each query, in the order of `queries`. Throws what the retriever throws. */
export async function* retrieveRun(
  retriever: Retriever,
  queries: readonly QueryText[],
  { k, signal }: RetrieveRunOptions,
): AsyncGenerator<QueryResults> {
  for (let start = 0; start < queries.length; start += batchSize) {
    const batch = queries.slice(start, start + batchSize);
    const found = await retriever.retrieve(
      batch.map(({ text }) => text),
      k,
      signal,
    );
    for (const [i, { id }] of batch.entries())
      yield [id, (found[i] ?? []).map(({ passage, score }): RunEntry => ({ id: passage.id, score }))];
  }
}
