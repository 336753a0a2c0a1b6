/**
 * A second look at the best passages of a retriever by a model that reads query and passage together. It sees
 * `depth` passages for each query; what the first stage did not find stays lost.
 */
import { z } from "zod";
import { ConfigError } from "../errors.ts";
import { canonicalJson, sha256 } from "../shared/hash.ts";
import { explainRetrieval, rankedOf, type Stage, type StagedRetriever } from "./explain-retrieval.ts";
import type { Retriever, RetrieverIdentity, ScoredPassage } from "./retriever.ts";

export const rerankOptionsSchema = z.strictObject({
  depth: z
    .int()
    .min(1)
    .max(10_000)
    .default(50)
    .describe("Passages that are read again for each query; k where that is more."),
});
export type RerankOptions = z.output<typeof rerankOptionsSchema>;

/** A query and a passage to be read together. */
export interface RerankPair {
  readonly query: string;
  readonly passage: { readonly title: string; readonly text: string };
}

/** Says how well passages answer queries, reading both (`dense/cross-encoder.ts`). */
export interface Reranker {
  readonly identity: { readonly name: string; readonly hash: string };
  /** (pairs) higher is better. A pair's score does not depend on the others. Throws the signal's reason. */
  score(pairs: readonly RerankPair[], signal?: AbortSignal): Promise<Float32Array>;
}

/** Queries whose pairs are scored in one call, so that memory stays small. */
const QUERIES_PER_CALL = 16;

/**
 * `retriever` with its best passages put in the order of `reranker`; equal scores keep the order they had. Throws
 * `ConfigError` for options that cannot be used.
 */
export function rerankingRetriever(
  retriever: Retriever,
  reranker: Reranker,
  options: z.input<typeof rerankOptionsSchema> = {},
): StagedRetriever {
  const parsed = rerankOptionsSchema.safeParse(options);
  if (!parsed.success) throw new ConfigError(`options of reranking: ${z.prettifyError(parsed.error)}`);
  const { depth } = parsed.data;
  const deep = (k: number): number => (Number.isInteger(k) && k >= 1 ? Math.max(depth, k) : k);
  return {
    identity: identityOf(retriever.identity, reranker, depth),
    spent: retriever.spent,
    retrieve: async (queries, k, signal) => {
      const answers = await retriever.retrieve(queries, deep(k), signal);
      const results: ScoredPassage[][] = [];
      for (let at = 0; at < queries.length; at += QUERIES_PER_CALL) {
        const some = answers.slice(at, at + QUERIES_PER_CALL);
        results.push(...(await reorder(queries.slice(at), some, { reranker, signal })));
      }
      return results.map((answer) => answer.slice(0, k));
    },
    retrieveInStages: async (query, k, watch) => {
      const first = await explainRetrieval(retriever, { query, k: deep(k) }, watch);
      const start = watch.now();
      const [whole = []] = await reorder([query], [first.answer], { reranker, signal: watch.signal });
      const milliseconds = watch.now() - start;
      const answer = whole.slice(0, k);
      const ranked = rankedOf(answer, [first.stages.at(-1) as Stage]);
      return { stages: [...first.stages, { name: "rerank", milliseconds, ranked }], answer };
    },
  };
}

async function reorder(
  queries: readonly string[],
  answers: readonly (readonly ScoredPassage[])[],
  { reranker, signal }: { readonly reranker: Reranker; readonly signal: AbortSignal | undefined },
): Promise<ScoredPassage[][]> {
  const pairs = answers.flatMap((answer, i) =>
    answer.map(({ passage }) => ({ query: queries[i] as string, passage })),
  );
  const scores = await reranker.score(pairs, signal);
  let next = 0;
  return answers.map((answer) => {
    const scored = answer.map(({ passage }) => ({ passage, score: scores[next++] as number }));
    return scored.sort((a, b) => b.score - a.score);
  });
}

function identityOf(first: RetrieverIdentity, { identity }: Reranker, depth: number): RetrieverIdentity {
  return {
    method: `${first.method}+rerank`,
    corpusHash: first.corpusHash,
    indexHash: sha256(canonicalJson({ first, reranker: identity.hash, depth })),
    parameters: { ...first.parameters, reranker: identity.name, rerankDepth: depth },
  };
}
