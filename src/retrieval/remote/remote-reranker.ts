/**
 * A reranker that another program serves in Search-R1's dialect: `POST /rerank` with queries and, for each, its
 * passages. Some servers answer with the passage as a text of their own making; it is found again by its letters and
 * digits. A passage that was not among those of its query is an error: some servers mix the passages of all queries.
 */

import type { Passage } from "../../corpus/passage.ts";
import { RetrieverError } from "../../errors.ts";
import type { ScoredPassage } from "../retriever.ts";
import { contentsOf, isFields } from "./document.ts";
import { checkHealth, endpointOf } from "./endpoint.ts";
import { excerpt, fetchJson, type HttpPolicy } from "./http.ts";
import { createLimiter, runTogether, sendableQuery } from "./limits.ts";
import type { RemoteRerankerOptions } from "./remote-options.ts";
import { checkK, type RetrieverWorld } from "./world.ts";

export interface RemoteReranker {
  readonly identity: { readonly method: string; readonly parameters: Readonly<Record<string, string>> };
  /** The best `k` of the candidates of each query with the scores of the server, best first. */
  rerank(
    queries: readonly string[],
    candidates: readonly (readonly ScoredPassage[])[],
    k: number,
    signal?: AbortSignal,
  ): Promise<ScoredPassage[][]>;
}

interface Question {
  readonly query: string;
  readonly passages: readonly Passage[];
}

/** Connects to the server of `options`. Throws `RetrieverError` when it does not answer, `ConfigError` without its key. */
export async function createRemoteReranker(
  options: RemoteRerankerOptions,
  world: RetrieverWorld,
  signal?: AbortSignal,
): Promise<RemoteReranker> {
  const endpoint = endpointOf(options, world, "/rerank");
  const policy: HttpPolicy = { ...options, maxReplyBytes: 256 << 20, secrets: endpoint.secrets };
  await checkHealth(endpoint, { policy, world, signal });
  const limiter = createLimiter(options.concurrency);
  const url = `${endpoint.url}/rerank`;
  const call = async (questions: readonly Question[], k: number, group: AbortSignal) => {
    const body = {
      queries: questions.map(({ query }) => sendableQuery(query, 2000)),
      documents: questions.map(({ passages }) =>
        passages.map((passage) => ({ id: passage.id, contents: contentsOf(passage) })),
      ),
      rerank_topk: k,
      return_scores: true,
    };
    const context = { world, signal: group };
    const reply = await fetchJson({ method: "POST", url, headers: endpoint.headers, body }, policy, context);
    const result = isFields(reply) ? reply.result : undefined;
    if (!Array.isArray(result) || result.length !== questions.length)
      throw new RetrieverError(
        `POST ${url}: expected {"result": ${questions.length} lists}, got ${excerpt(JSON.stringify(reply))}`,
      );
    return questions.map((question, index) => reranked(question, result[index], url).slice(0, k));
  };
  return {
    identity: { method: "remote rerank", parameters: { url: endpoint.url } },
    rerank: async (queries, candidates, k, callSignal) => {
      checkK(k);
      const size = options.batchSize;
      const questions = queries.map((query, index) => ({
        query,
        passages: (candidates[index] ?? []).map(({ passage }) => passage),
      }));
      const asked = questions.filter(({ passages }) => passages.length > 0);
      const batches = Array.from({ length: Math.ceil(asked.length / size) }, (_, index) =>
        asked.slice(index * size, (index + 1) * size),
      );
      const answers = await runTogether(
        batches.map((batch) => (group) => limiter.run(() => call(batch, k, group), group)),
        { concurrency: options.concurrency, signal: callSignal },
      );
      const answerOf = new Map(answers.flat().map((answer, index) => [asked[index], answer]));
      return questions.map((question) => answerOf.get(question) ?? []);
    },
  };
}

/** The server's list as passages of the question, each at most once, by falling score. */
function reranked({ passages }: Question, list: unknown, url: string): ScoredPassage[] {
  const wrong = (came: unknown): RetrieverError =>
    new RetrieverError(
      `POST ${url}: expected passages of the query with scores, got ${excerpt(JSON.stringify(came) ?? "nothing")}; ` +
        "a server that mixes the passages of several queries needs batchSize 1",
    );
  if (!Array.isArray(list)) throw wrong(list);
  const left = new Set(passages);
  const answer = list.map((entry: unknown): ScoredPassage => {
    const { document, score } = isFields(entry) ? entry : {};
    const passage = [...left].find((candidate) => isSame(candidate, document));
    if (passage === undefined || typeof score !== "number" || !Number.isFinite(score)) throw wrong(entry);
    left.delete(passage);
    return { passage, score };
  });
  return answer.sort((a, b) => b.score - a.score);
}

function isSame(passage: Passage, document: unknown): boolean {
  if (isFields(document) && typeof document.id === "string") return document.id === passage.id;
  const text = isFields(document) ? document.contents : document;
  return typeof text === "string" && letters(text.replace(/^\(Title:/, "")) === letters(contentsOf(passage));
}

function letters(text: string): string {
  return text.replace(/[^\p{L}\p{N}]+/gu, "");
}
