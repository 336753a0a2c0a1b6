/**
 * A reranker that another program serves in Search-R1's dialect: `POST /rerank` with queries and, for each, its
 * passages. Some servers answer with the passage as a text of their own making; it is found again by its letters and
 * digits. A passage that was not among those of its query is an error: some servers mix the passages of all queries.
 */
import { RetrieverError } from "../../errors.ts";
import { createLimiter, runTogether } from "../../shared/concurrency.ts";
import { endpointOf } from "../../shared/endpoint.ts";
import { sha256 } from "../../shared/hash.ts";
import { excerpt, fetchJson, type HttpPolicy, redact } from "../../shared/http.ts";
import type { NetworkWorld } from "../../shared/network-world.ts";
import type { Reranker, RerankPair } from "../rerank.ts";
import { contentsOf, isFields } from "./document.ts";
import { sendableQuery } from "./queries.ts";
import type { RemoteRerankerOptions } from "./remote-options.ts";
import { checkHealth } from "./stated-facts.ts";

const MAX_QUERY_CHARACTERS = 2000;

/** A query with its passages as they are sent; their places in the list are their ids. */
interface Question {
  readonly query: string;
  readonly contents: readonly string[];
}

/**
 * Connects to the server of `options`. Throws `RetrieverError` when it does not answer, `ConfigError` without its key;
 * scoring throws `RetrieverError` for a reply that does not score each passage of each query once.
 */
export async function createRemoteReranker(
  options: RemoteRerankerOptions,
  world: NetworkWorld,
  signal?: AbortSignal,
): Promise<Reranker> {
  const endpoint = endpointOf(options, world, "/rerank");
  const policy: HttpPolicy = {
    ...options,
    error: RetrieverError,
    maxReplyBytes: 256 << 20,
    secrets: endpoint.secrets,
  };
  const facts = await checkHealth(endpoint, { policy, world, signal });
  const limiter = createLimiter(options.concurrency);
  const url = `${endpoint.url}/rerank`;
  const call = async (questions: readonly Question[], group: AbortSignal): Promise<number[][]> => {
    const documents = questions.map(({ contents }) =>
      contents.map((text, place) => ({ id: String(place), contents: text })),
    );
    const most = Math.max(...questions.map(({ contents }) => contents.length));
    const queries = questions.map(({ query }) => query);
    const body = { queries, documents, rerank_topk: most, return_scores: true };
    const context = { world, signal: group };
    const reply = await fetchJson({ method: "POST", url, headers: endpoint.headers, body }, policy, context);
    const wrong = (expected: string, came: unknown): RetrieverError =>
      new RetrieverError(
        redact(
          `POST ${url}: expected ${expected}, got ${excerpt(JSON.stringify(came) ?? "nothing")}`,
          endpoint.secrets,
        ),
      );
    const result = isFields(reply) ? reply.result : undefined;
    if (!Array.isArray(result) || result.length !== questions.length)
      throw wrong(`{"result": ${questions.length} lists}`, reply);
    return questions.map((question, index) => {
      const scores = scoresOf(question, result[index]);
      if (scores !== undefined) return scores;
      const advice = "; a server that mixes the passages of several queries needs batchSize 1";
      throw wrong(
        `each of the ${question.contents.length} passages of the query once, with a score${advice}`,
        result[index],
      );
    });
  };
  return {
    identity: { name: `remote ${endpoint.url}`, hash: sha256(JSON.stringify([endpoint.url, facts])) },
    score: async (pairs, callSignal) => {
      const questions = questionsOf(pairs);
      const size = options.batchSize;
      const batches = Array.from({ length: Math.ceil(questions.length / size) }, (_, index) =>
        questions.slice(index * size, (index + 1) * size),
      );
      const scores = await runTogether(
        batches.map((batch) => (group) => limiter.run(() => call(batch, group), group)),
        { concurrency: options.concurrency, signal: callSignal },
      );
      return Float32Array.from(scores.flat(2));
    },
  };
}

/** Pairs that follow each other with the same query, together. */
function questionsOf(pairs: readonly RerankPair[]): Question[] {
  const questions: { readonly query: string; readonly contents: string[] }[] = [];
  let before: string | undefined;
  for (const { query, passage } of pairs) {
    const contents = contentsOf(passage);
    if (query === before) questions.at(-1)?.contents.push(contents);
    else questions.push({ query: sendableQuery(query, MAX_QUERY_CHARACTERS), contents: [contents] });
    before = query;
  }
  return questions;
}

/** The score of each passage by its place, or `undefined` when the list does not give each of them once. */
function scoresOf({ contents }: Question, list: unknown): number[] | undefined {
  if (!Array.isArray(list) || list.length !== contents.length) return undefined;
  const scores = new Array<number>(contents.length);
  const left = new Set(contents.keys());
  for (const entry of list as unknown[]) {
    const { document, score } = isFields(entry) ? entry : {};
    const place = [...left].find((index) => isSame(index, contents[index] as string, document));
    if (place === undefined || typeof score !== "number" || !Number.isFinite(score)) return undefined;
    left.delete(place);
    scores[place] = score;
  }
  return scores;
}

function isSame(place: number, contents: string, document: unknown): boolean {
  if (isFields(document) && document.id !== undefined) return String(document.id) === String(place);
  const text = isFields(document) ? document.contents : document;
  return typeof text === "string" && letters(text.replace(/^\(Title:/, "")) === letters(contents);
}

function letters(text: string): string {
  return text.replace(/[^\p{L}\p{N}]+/gu, "");
}
