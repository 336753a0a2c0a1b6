/**
 * `POST /rerank` of Search-R1: documents of each query, re-scored and sorted. A document may be a text, an object
 * with `contents` or with `title` and `text`, or a search result that holds such an object under `document`; what
 * was sent is sent back. Unlike the server of Search-R1, each query sees its own documents only.
 */
import { type Body, checkQueries, flag, invalid, textList, wholeNumber } from "./fields.ts";
import { describe } from "./http-error.ts";
import type { ServerLimits } from "./limits.ts";

/** The relevance of each document to the query, higher is better, aligned with `documents`. */
export type Rerank = (
  query: string,
  documents: readonly string[],
  signal: AbortSignal,
) => Promise<readonly number[]>;

export interface RerankCall {
  readonly queries: readonly string[];
  /** Aligned with `queries`; as they were sent. */
  readonly documents: readonly (readonly unknown[])[];
  /** How many are returned for a query at most; all where the client does not say. */
  readonly k: number;
  readonly withScores: boolean;
}

/** Throws `HttpError` (422). */
export function readRerank(body: Body, limits: ServerLimits): RerankCall {
  const queries = textList(body, "queries", limits.queries, "send several calls");
  const { documents } = body;
  if (!Array.isArray(documents) || !documents.every(Array.isArray) || documents.length !== queries.length)
    throw invalid(
      `"documents", a list of documents for each of the ${queries.length} queries`,
      describe(documents),
      'send {"queries": ["…"], "documents": [["…", "…"]]}',
    );
  const total = documents.reduce((sum: number, list: unknown[]) => sum + list.length, 0);
  if (total > limits.passages)
    throw invalid(`at most ${limits.passages} documents in one call`, `${total}`, "send several calls");
  checkQueries(queries, 0, limits);
  return {
    queries,
    documents: documents as unknown[][],
    k: wholeNumber(body, {
      keys: ["rerank_topk", "topk", "top_k", "k"],
      default: total,
      most: Math.max(limits.k, total),
    }),
    withScores: flag(body, "return_scores", false),
  };
}

/** The answer to `call` as JSON. */
export async function answerRerank(call: RerankCall, rerank: Rerank, signal: AbortSignal): Promise<string> {
  const result: unknown[][] = [];
  for (const [index, query] of call.queries.entries()) {
    const documents = (call.documents[index] ?? []).map(unwrapped);
    const texts = documents.map((document, place) => textOf(document, `documents[${index}][${place}]`));
    const scores = texts.length === 0 ? [] : await rerank(query, texts, signal);
    const ranked = documents
      .map((document, place) => ({ document, score: scores[place] ?? 0 }))
      .sort((a, b) => b.score - a.score)
      .slice(0, call.k);
    result.push(call.withScores ? ranked : ranked.map(({ document }) => document));
  }
  return JSON.stringify({ result });
}

function unwrapped(document: unknown): unknown {
  return isObject(document) && document.document !== undefined ? document.document : document;
}

function textOf(document: unknown, place: string): string {
  if (typeof document === "string") return document;
  if (isObject(document)) {
    if (typeof document.contents === "string") return document.contents;
    if (typeof document.text === "string")
      return typeof document.title === "string" ? `"${document.title}"\n${document.text}` : document.text;
  }
  throw invalid(
    `a document at ${place}: a text, or an object with "contents" or "text"`,
    describe(document),
    "correct it",
  );
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
