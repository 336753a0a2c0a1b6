/**
 * A retriever that joins calls which wait at the same time into one: for retrievers whose call costs much whatever
 * the number of queries, such as an encoder or a server over the network. Nothing waits for company: a call that
 * finds nothing running starts at once, and those that come meanwhile leave together. BM25 gains nothing by it.
 */
import type { Retriever, ScoredPassage } from "../retrieval/retriever.ts";

interface Waiting {
  readonly queries: readonly string[];
  readonly k: number;
  readonly signal: AbortSignal | undefined;
  readonly resolve: (results: ScoredPassage[][]) => void;
  readonly reject: (error: unknown) => void;
}

/** `most` queries are joined into one call; a call with more of its own goes alone. Only calls with equal `k` join. */
export function mergeCalls(retriever: Retriever, most: number): Retriever {
  const waiting = new Set<Waiting>();
  let isRunning = false;

  const start = async (): Promise<void> => {
    isRunning = true;
    for (let group = nextGroup(waiting, most); group.length > 0; group = nextGroup(waiting, most))
      await runGroup(retriever, group);
    isRunning = false;
  };

  return {
    identity: retriever.identity,
    retrieve: (queries, k, signal) =>
      new Promise((resolve, reject) => {
        if (signal?.aborted) return reject(signal.reason);
        const call: Waiting = { queries, k, signal, resolve, reject };
        const leave = (): void => {
          waiting.delete(call);
          reject(signal?.reason);
        };
        signal?.addEventListener("abort", leave, { once: true });
        waiting.add(call);
        if (!isRunning) void start();
      }),
  };
}

/** Takes the calls that go next out of `waiting`: the first one, and those with its `k` that fit. */
function nextGroup(waiting: Set<Waiting>, most: number): Waiting[] {
  const group: Waiting[] = [];
  let queries = 0;
  for (const call of waiting) {
    const [first = call] = group;
    if (call.k !== first.k || (group.length > 0 && queries + call.queries.length > most)) continue;
    group.push(call);
    waiting.delete(call);
    queries += call.queries.length;
  }
  return group;
}

/** One call for all of a group; it is aborted when nobody of the group waits any more. Never throws. */
async function runGroup(retriever: Retriever, group: readonly Waiting[]): Promise<void> {
  const controller = new AbortController();
  const leave = (): void => {
    if (group.every(({ signal }) => signal?.aborted)) controller.abort(group[0]?.signal?.reason);
  };
  for (const { signal } of group) signal?.addEventListener("abort", leave, { once: true });
  try {
    const queries = group.flatMap((call) => call.queries);
    const results = await retriever.retrieve(queries, group[0]?.k ?? 1, controller.signal);
    let from = 0;
    for (const call of group) {
      call.resolve(results.slice(from, from + call.queries.length));
      from += call.queries.length;
    }
  } catch (error) {
    for (const call of group) call.reject(error);
  } finally {
    for (const { signal } of group) signal?.removeEventListener("abort", leave);
  }
}
