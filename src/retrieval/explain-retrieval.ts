/**
 * What each stage of a retriever did to one query: its ranking, how long it took, and where each passage stood
 * before. Retrievers made of others (hybrid, reranking) tell their stages; any other is a single stage.
 */
import type { Retriever, ScoredPassage } from "./retriever.ts";

/** A passage in the ranking of a stage. */
export interface StagePassage {
  readonly id: string;
  readonly score: number;
  /** From 1. */
  readonly rank: number;
  /** Its rank in each earlier stage that this one works on, by name; absent where it was not found. */
  readonly before: Readonly<Record<string, number>>;
}

export interface Stage {
  /** Unique within an explanation, such as `bm25`, `dense`, `fusion`, `rerank`. */
  readonly name: string;
  readonly milliseconds: number;
  readonly ranked: readonly StagePassage[];
}

/** How an explanation is made: the clock in milliseconds from any origin, and a signal to stop. */
export interface Watch {
  readonly now: () => number;
  readonly signal?: AbortSignal | undefined;
}

/** The stages of one query, first to last, and what came out of the last. */
export interface StagedAnswer {
  readonly stages: readonly Stage[];
  readonly answer: readonly ScoredPassage[];
}

/** A retriever that is made of others. */
export interface StagedRetriever extends Retriever {
  /** Like `retrieve` for one query, with all stages; they run one after the other, so that their times mean something. */
  retrieveInStages(query: string, k: number, watch: Watch): Promise<StagedAnswer>;
}

function isStaged(retriever: Retriever): retriever is StagedRetriever {
  return "retrieveInStages" in retriever;
}

/**
 * The stages of `retriever` for one query; the last holds its answer. `name` is that of the stage of a retriever that
 * has no stages of its own. Throws what `retrieve` throws.
 */
export async function explainRetrieval(
  retriever: Retriever,
  {
    query,
    k,
    name = retriever.identity.method,
  }: { readonly query: string; readonly k: number; readonly name?: string },
  watch: Watch,
): Promise<StagedAnswer> {
  if (isStaged(retriever)) return await retriever.retrieveInStages(query, k, watch);
  const start = watch.now();
  const [answer = []] = await retriever.retrieve([query], k, watch.signal);
  const milliseconds = watch.now() - start;
  return { stages: [{ name, milliseconds, ranked: rankedOf(answer, []) }], answer };
}

/** The passages of an answer with their ranks in earlier stages. */
export function rankedOf(answer: readonly ScoredPassage[], earlier: readonly Stage[]): StagePassage[] {
  const ranks = earlier.map(({ name, ranked }) => ({
    name,
    of: new Map(ranked.map(({ id, rank }) => [id, rank])),
  }));
  return answer.map(({ passage: { id }, score }, i) => {
    const before: Record<string, number> = {};
    for (const { name, of } of ranks) {
      const rank = of.get(id);
      if (rank !== undefined) before[name] = rank;
    }
    return { id, score, rank: i + 1, before };
  });
}
