/**
 * The request and reply formats that retrieval servers speak, as data: Search-R1 (also verl, slime, agent-lightning,
 * ASearcher, CoSearch), SkyRL, rLLM, ReCall/ReSearch and the REST interface of Pyserini/Anserini. Replies are parsed
 * strictly; what does not fit is a message, not a guess. Reranking has its own file.
 */
import type { ScoredPassage } from "../retriever.ts";
import { documentPassage, isFields } from "./document.ts";

export const dialectNames = ["search-r1", "skyrl", "rllm", "recall", "pyserini"] as const;
export type DialectName = (typeof dialectNames)[number];

export interface DialectRequest {
  readonly method: "GET" | "POST";
  /** Below the base URL, with its query string. */
  readonly path: string;
  readonly body?: unknown;
}

/** A document as it came: its passage, and its score when the server gives one. */
export interface Found {
  readonly passage: ScoredPassage["passage"];
  readonly score: number | undefined;
}

export interface Dialect {
  /** Many queries a call; without it each query is a call of its own. */
  readonly isBatched: boolean;
  readonly path: string;
  request(queries: readonly string[], k: number, index: string): DialectRequest;
  /** One list for each query, or what was expected instead. */
  parse(reply: unknown, queries: number): Found[][] | Misfit;
}

/** What a reply should have been, and the part that was not. */
export class Misfit {
  readonly expected: string;
  readonly came: unknown;
  constructor(expected: string, came: unknown) {
    this.expected = expected;
    this.came = came;
  }
}

const envelope: Pick<Dialect, "parse"> = {
  parse: (reply, queries) => {
    const result = isFields(reply) ? reply.result : undefined;
    if (!Array.isArray(result)) return new Misfit('{"result": a list of lists}', reply);
    return lists(result, queries, (entry) =>
      isFields(entry) && "document" in entry ? found(entry.document, entry.score) : found(entry, undefined),
    );
  },
};

export const dialects: Readonly<Record<DialectName, Dialect>> = {
  "search-r1": {
    isBatched: true,
    path: "/retrieve",
    request: (queries, k) => ({
      method: "POST",
      path: "/retrieve",
      body: { queries, topk: k, return_scores: true },
    }),
    ...envelope,
  },
  skyrl: {
    isBatched: false,
    path: "/retrieve",
    request: ([query], k) => ({
      method: "POST",
      path: "/retrieve",
      body: { query, topk: k, return_scores: true },
    }),
    ...envelope,
  },
  rllm: {
    isBatched: false,
    path: "/retrieve",
    request: ([query], k) => ({ method: "POST", path: "/retrieve", body: { query, top_k: k } }),
    parse: (reply, queries) => {
      const results = isFields(reply) ? reply.results : undefined;
      if (!Array.isArray(results)) return new Misfit('{"results": a list}', reply);
      return lists([results], queries, (entry) =>
        isFields(entry)
          ? found(isFields(entry.document) ? entry.document : without(entry, ["score"]), entry.score)
          : undefined,
      );
    },
  },
  recall: {
    isBatched: true,
    path: "/batch_search",
    request: (queries, k) => ({
      method: "POST",
      path: "/batch_search",
      body: { query: queries, top_n: k, return_score: true },
    }),
    parse: (reply, queries) => {
      if (!Array.isArray(reply)) return new Misfit("a list, of documents or of documents and scores", reply);
      if (!isPairOfLists(reply, queries)) return lists(reply, queries, (entry) => found(entry, undefined));
      const [documents, scores] = reply;
      return lists(documents, queries, (entry, query, rank) => found(entry, scores[query]?.[rank]));
    },
  },
  pyserini: {
    isBatched: false,
    path: "",
    request: ([query = ""], k, index) => ({
      method: "GET",
      path: `/v1/${encodeURIComponent(index)}/search?query=${encodeURIComponent(query)}&hits=${k}`,
    }),
    parse: (reply, queries) => {
      const candidates = isFields(reply) ? reply.candidates : undefined;
      if (!Array.isArray(candidates)) return new Misfit('{"candidates": a list}', reply);
      return lists([candidates], queries, (entry) =>
        isFields(entry) && (typeof entry.docid === "string" || typeof entry.docid === "number")
          ? found(entry.doc, entry.score, String(entry.docid))
          : undefined,
      );
    },
  },
};

type Read = (entry: unknown, query: number, rank: number) => Found | undefined;

function lists(result: readonly unknown[], queries: number, read: Read): Found[][] | Misfit {
  if (result.length !== queries) return new Misfit(`${queries} lists, one a query`, result);
  const answers: Found[][] = [];
  for (const [query, list] of result.entries()) {
    if (!Array.isArray(list)) return new Misfit("a list of documents for each query", list);
    const answer: Found[] = [];
    for (const [rank, entry] of list.entries()) {
      const document = read(entry, query, rank);
      if (document === undefined) return new Misfit("a document with a text, and a score or none", entry);
      answer.push(document);
    }
    answers.push(answer);
  }
  return answers;
}

/** `id` is taken for a document that has none of its own. */
function found(document: unknown, score: unknown, id?: string): Found | undefined {
  const passage = documentPassage(document, id);
  if (passage === undefined) return undefined;
  const named = id === undefined ? passage : { ...passage, id };
  if (score === undefined || score === null) return { passage: named, score: undefined };
  return typeof score === "number" && Number.isFinite(score) ? { passage: named, score } : undefined;
}

/** Whether a ReCall reply is `[documents, scores]`: two lists of a list a query, numbers in the second. */
function isPairOfLists(reply: readonly unknown[], queries: number): reply is [unknown[][], unknown[][]] {
  const isListOfLists = (value: unknown): value is unknown[][] =>
    Array.isArray(value) && value.length === queries && value.every((inner) => Array.isArray(inner));
  const [documents, scores] = reply;
  return (
    reply.length === 2 &&
    isListOfLists(documents) &&
    isListOfLists(scores) &&
    scores.every((list) => list.every((score) => typeof score === "number"))
  );
}

function without(fields: Readonly<Record<string, unknown>>, keys: readonly string[]) {
  return Object.fromEntries(Object.entries(fields).filter(([key]) => !keys.includes(key)));
}
