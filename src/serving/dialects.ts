/**
 * Every request that asks for passages by POST, in one table: how a body is told apart, what it asks, and how the
 * answer is written. The first row of a path whose `when` holds is taken. `docs/serving.md` shows the same table
 * with a request and its answer for each row, which a test sends.
 */
import type { ScoredPassage } from "../retrieval/retriever.ts";
import { type AnswerWriter, lists, plainDocument, scoredDocument, type WriteFound } from "./answer-writer.ts";
import { contentsOf, scoreJson } from "./document-json.ts";
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
  /** Writes the answer; `results` are aligned with `queries`. */
  write(out: AnswerWriter, results: readonly (readonly ScoredPassage[])[]): void;
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
    read: (body, context) => readRecall(body, context, one(text(body, "query"))),
  },
  {
    name: "recall-batch",
    path: "/batch_search",
    rule: "`query`, a list",
    when: (body) => has(body, "query"),
    read: (body, context) => readRecall(body, context, many(queriesOf(body, "query", context))),
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
  const writeFound = flag(body, "return_scores", false) ? scoredDocument : plainDocument;
  return {
    queries,
    k: kOf(body, context),
    write: (out, results) => {
      lists(out.raw('{"result":'), results, writeFound).raw("}");
    },
  };
}

/** rLLM has two clients: one reads `id` and `content` of a result, the other `document.id` and `document.contents`. */
function readRllm(body: Body, context: ReadContext): Omit<RetrievalCall, "dialect"> {
  const query = text(body, "query");
  const writeFound: WriteFound = (out, { passage, score }) => {
    const content = JSON.stringify(contentsOf(passage));
    out.raw(`{"id":${JSON.stringify(passage.id)},"content":${content},"document":`).document(passage);
    out.raw(`,"score":${scoreJson(score)}}`);
  };
  const head = `"query":${JSON.stringify(query)},"method":${JSON.stringify(context.method)}`;
  return {
    queries: [query],
    k: kOf(body, context),
    write: (out, [found = []]) => {
      out.raw(`{${head},"results":`).list(found, writeFound).raw(`,"num_results":${found.length}}`);
    },
  };
}

/** Documents, or with scores the pair of documents and scores. */
function readRecall(
  body: Body,
  context: ReadContext,
  { queries, write }: RecallShape,
): Omit<RetrievalCall, "dialect"> {
  const withScores = flag(body, "return_score", false) || flag(body, "return_scores", false);
  return {
    queries,
    k: kOf(body, context),
    write: (out, results) => {
      if (!withScores) return write(out, results, plainDocument);
      write(out.raw("["), results, plainDocument);
      write(out.raw(","), results, (inner, { score }) => inner.raw(scoreJson(score)));
      out.raw("]");
    },
  };
}

interface RecallShape {
  readonly queries: readonly string[];
  readonly write: (
    out: AnswerWriter,
    results: readonly (readonly ScoredPassage[])[],
    writeFound: WriteFound,
  ) => void;
}

/** A list. */
const one = (query: string): RecallShape => ({
  queries: [query],
  write: (out, [found = []], writeFound) => {
    out.list(found, writeFound);
  },
});

/** A list for each query. */
const many = (queries: readonly string[]): RecallShape => ({
  queries,
  write: (out, results, writeFound) => {
    lists(out, results, writeFound);
  },
});
