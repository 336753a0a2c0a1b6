/**
 * Every request that asks for passages by POST, in one table: how a body is told apart, what it asks, and how the
 * answer is written. The first row of a path whose `when` holds is taken. `docs/serving.md` shows the same table
 * with a request and its answer for each row, which a test sends.
 */
import type { ScoredPassage } from "../retrieval/retriever.ts";
import {
  contentsOf,
  documentJson,
  lists,
  plainDocument,
  scoredDocument,
  scoreJson,
} from "./document-json.ts";
import { type Body, checkQueries, flag, has, invalid, text, textList, wholeNumber } from "./fields.ts";
import { describe } from "./http-error.ts";
import type { ServerLimits } from "./limits.ts";

/** What a body is read with. */
export interface ReadContext {
  readonly limits: ServerLimits;
  /** Passages for a query where the client does not say how many. */
  readonly defaultK: number;
  /** How the retriever ranks, such as `bm25`. */
  readonly method: string;
}

/** What a request asks of the retriever, and how the answer is written. */
export interface RetrievalCall {
  readonly dialect: string;
  readonly queries: readonly string[];
  readonly k: number;
  /** `results` are aligned with `queries`. */
  write(results: readonly (readonly ScoredPassage[])[]): string;
}

export interface Dialect {
  readonly name: string;
  readonly path: string;
  /** In words, for people. */
  readonly rule: string;
  readonly when: (body: Body) => boolean;
  readonly read: (body: Body, context: ReadContext) => Omit<RetrievalCall, "dialect">;
}

export const dialects: readonly Dialect[] = [
  {
    name: "search-r1",
    path: "/retrieve",
    rule: "`queries`",
    when: (body) => has(body, "queries"),
    read: (body, context) => envelope(body, context, queriesOf(body, "queries", context)),
  },
  {
    name: "rllm",
    path: "/retrieve",
    rule: "`query` with `top_k` or `k`",
    when: (body) => has(body, "query") && (has(body, "top_k") || has(body, "k")),
    read: readRllm,
  },
  {
    name: "skyrl",
    path: "/retrieve",
    rule: "`query`",
    when: (body) => has(body, "query"),
    read: (body, context) => envelope(body, context, [text(body, "query")]),
  },
  {
    name: "recall",
    path: "/search",
    rule: "`query`",
    when: (body) => has(body, "query"),
    read: (body, context) => readRecall(body, context, [text(body, "query")], (json) => json.slice(1, -1)),
  },
  {
    name: "recall-batch",
    path: "/batch_search",
    rule: "`query`, a list",
    when: (body) => has(body, "query"),
    read: (body, context) => readRecall(body, context, queriesOf(body, "query", context), (json) => json),
  },
];

/** The call that a body asks for. Throws `HttpError` (422) for a body that no row of `path` takes. */
export function readCall(path: string, body: Body, context: ReadContext): RetrievalCall {
  if (path === "/retrieve" && has(body, "queries") && has(body, "query"))
    throw invalid('"queries" or "query"', "both", "send one of them");
  const rows = dialects.filter((dialect) => dialect.path === path);
  const dialect = rows.find(({ when }) => when(body));
  if (dialect === undefined)
    throw invalid(
      rows.map(({ rule }) => rule.replaceAll("`", '"')).join(", or "),
      describe(body),
      "see /openapi.yaml for every request that this server takes",
    );
  const call = dialect.read(body, context);
  checkQueries(call.queries, call.k, context.limits);
  return { dialect: dialect.name, ...call };
}

const kNames = ["topk", "top_k", "k", "top_n"];

function kOf(body: Body, { defaultK, limits }: ReadContext): number {
  return wholeNumber(body, { keys: kNames, default: Math.min(defaultK, limits.k), most: limits.k });
}

function queriesOf(body: Body, key: string, { limits }: ReadContext): readonly string[] {
  return textList(body, key, limits.queries, "send several calls");
}

/** `{"result": [[…], …]}` of Search-R1; with scores each document stands in a pair with its score. */
function envelope(
  body: Body,
  context: ReadContext,
  queries: readonly string[],
): Omit<RetrievalCall, "dialect"> {
  const write = flag(body, "return_scores", false) ? scoredDocument : plainDocument;
  const most = context.limits.answerCharacters;
  return {
    queries,
    k: kOf(body, context),
    write: (results) => `{"result":${lists(results, write, most)}}`,
  };
}

/** rLLM has two clients: one reads `id` and `content` of a result, the other `document.id` and `document.contents`. */
function readRllm(body: Body, context: ReadContext): Omit<RetrievalCall, "dialect"> {
  const query = text(body, "query");
  const writeFound = ({ passage, score }: ScoredPassage): string => {
    const content = JSON.stringify(contentsOf(passage));
    const id = JSON.stringify(passage.id);
    return `{"id":${id},"content":${content},"document":${documentJson(passage)},"score":${scoreJson(score)}}`;
  };
  return {
    queries: [query],
    k: kOf(body, context),
    write: (results) => {
      const found = results.slice(0, 1);
      const list = lists(found, writeFound, context.limits.answerCharacters).slice(1, -1);
      const head = `"query":${JSON.stringify(query)},"method":${JSON.stringify(context.method)}`;
      return `{${head},"results":${list},"num_results":${found[0]?.length ?? 0}}`;
    },
  };
}

/** Documents, or with scores the pair of documents and scores; `shape` makes of lists of lists what is sent. */
function readRecall(
  body: Body,
  context: ReadContext,
  queries: readonly string[],
  shape: (json: string) => string,
): Omit<RetrievalCall, "dialect"> {
  const withScores = flag(body, "return_score", false) || flag(body, "return_scores", false);
  return {
    queries,
    k: kOf(body, context),
    write: (results) => {
      const documents = shape(lists(results, plainDocument, context.limits.answerCharacters));
      if (!withScores) return documents;
      const scores = results.map((found) => `[${found.map(({ score }) => scoreJson(score)).join(",")}]`);
      return `[${documents},${shape(`[${scores.join(",")}]`)}]`;
    },
  };
}
