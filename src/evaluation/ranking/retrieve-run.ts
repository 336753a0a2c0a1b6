/**
 * The results of a retriever for many queries as a run, one query after the other, asked in batches. A run is ordered by
 * its scores as 32-bit floats (`ranking.ts`), in which duplicates and fused rankings often tie; a score that would not be
 * below the one before it is lowered by as little as such a float can say, so that what is scored is what was found.
 */
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
      yield [id, falling((found[i] ?? []).map(({ passage, score }) => ({ id: passage.id, score })))];
  }
}

/** The entries in their order, with scores that fall as 32-bit floats. */
function falling(entries: readonly RunEntry[]): RunEntry[] {
  let last = Number.POSITIVE_INFINITY;
  return entries.map(({ id, score }) => {
    const kept = Math.fround(score) < last ? score : floatBelow(last);
    last = Math.fround(kept);
    return { id, score: kept };
  });
}

/** The greatest 32-bit float below `x`, which is one itself. */
function floatBelow(x: number): number {
  const float = new Float32Array([x]);
  const bits = new Int32Array(float.buffer);
  if (x === 0) return -(2 ** -149);
  bits[0] = (bits[0] as number) + (x > 0 ? -1 : 1);
  return float[0] as number;
}
