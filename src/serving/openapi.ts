/** The interface of a retrieval server as OpenAPI 3.1, with the limits that are in force. */
import { dialects } from "./dialects.ts";
import type { ServerLimits } from "./limits.ts";

export interface DescribedServer {
  readonly limits: ServerLimits;
  readonly defaultK: number;
  readonly name: string;
  readonly options: { readonly apiKey?: string };
}

type Json = Readonly<Record<string, unknown>>;

export function openApiDocument(server: DescribedServer): Json {
  const { limits, defaultK, name, options } = server;
  return {
    openapi: "3.1.0",
    info: {
      title: "Forager retrieval server",
      version: "1",
      description: `Passages for queries, in the dialects of ${dialects.map((dialect) => dialect.name).join(", ")} and Pyserini.`,
    },
    ...(options.apiKey !== undefined && { security: [{ bearer: [] }, { apiKey: [] }] }),
    paths: {
      "/retrieve": post("Passages for one query or many", "RetrieveRequest", "RetrieveAnswer"),
      "/search": post("Documents for one query (ReCall, ReSearch)", "SearchRequest", "SearchAnswer"),
      "/batch_search": post("Documents for many queries (ReCall, ReSearch)", "BatchRequest", "SearchAnswer"),
      "/access": post("Documents by url or id (ASearcher)", "AccessRequest", "AccessAnswer"),
      "/rerank": post("Documents in the order of their relevance", "RerankRequest", "RetrieveAnswer"),
      [`/v1/${name}/search`]: get("Search (Pyserini)", [
        parameter("query", { type: "string" }, true),
        parameter("hits", {
          type: "integer",
          minimum: 1,
          maximum: limits.k,
          default: Math.min(10, limits.k),
        }),
        parameter("parse", { type: "boolean", default: true }),
        parameter("k1", { type: "number", description: "Only the value of the index." }),
        parameter("b", { type: "number", description: "Only the value of the index." }),
      ]),
      [`/v1/${name}/doc/{docid}`]: get("A document by id (Pyserini)", [
        { name: "docid", in: "path", required: true, schema: { type: "string" } },
        parameter("parse", { type: "boolean", default: true }),
      ]),
      "/health": get("Whether the server answers", []),
      "/healthz": get("The same", []),
      "/stats": get("Counts since the start", []),
      "/metrics": get("The same for Prometheus", []),
      "/openapi.json": get("This document", []),
      "/openapi.yaml": get("This document", []),
    },
    components: {
      schemas: schemas(limits, defaultK),
      securitySchemes: {
        bearer: { type: "http", scheme: "bearer" },
        apiKey: { type: "apiKey", in: "header", name: "X-API-Key" },
      },
    },
  };
}

/** The document as YAML. */
export async function openApiYaml(document: Json): Promise<string> {
  const { stringify } = await import("yaml");
  return stringify(document, { aliasDuplicateObjects: false });
}

const ref = (name: string): Json => ({ $ref: `#/components/schemas/${name}` });
const json = (name: string): Json => ({ content: { "application/json": { schema: ref(name) } } });

const failures: Json = Object.fromEntries(
  Object.entries({
    400: "Not JSON",
    401: "Without the API key",
    408: "A body that did not come in time",
    413: "A body that is too large",
    422: "A request that is understood and cannot be served",
    429: "Too many calls at one time; see Retry-After",
    501: "Something that this server was started without",
    502: "The retriever failed",
    503: "Too slow, or stopping",
  }).map(([status, description]) => [status, { description, ...json("Error") }]),
);

function post(summary: string, request: string, answer: string): Json {
  return {
    post: {
      summary,
      requestBody: { required: true, ...json(request) },
      responses: { 200: { description: "The answer", ...json(answer) }, ...failures },
    },
  };
}

function get(summary: string, parameters: readonly Json[]): Json {
  return { get: { summary, parameters, responses: { 200: { description: "The answer" }, ...failures } } };
}

function parameter(name: string, schema: Json, required = false): Json {
  return { name, in: "query", required, schema };
}

function schemas(limits: ServerLimits, defaultK: number): Json {
  const query = { type: "string", maxLength: limits.queryCharacters };
  const queries = { type: "array", items: query, maxItems: limits.queries };
  const k = {
    type: ["integer", "null"],
    minimum: 1,
    maximum: limits.k,
    default: Math.min(defaultK, limits.k),
  };
  const scores = { type: "boolean", default: false };
  const object = (properties: Json, required: readonly string[]): Json => ({
    type: "object",
    properties,
    required,
  });
  const text = { type: "string" };
  const scored = object({ document: ref("Document"), score: { type: ["number", "null"] } }, [
    "document",
    "score",
  ]);
  const found = { type: "array", items: { anyOf: [ref("Document"), scored] } };
  return {
    Document: {
      ...object({ id: text, contents: text, title: text, text, url: text }, ["id", "contents"]),
      additionalProperties: true,
    },
    RetrieveRequest: {
      oneOf: [
        object({ queries, topk: k, return_scores: scores }, ["queries"]),
        object({ query, topk: k, return_scores: scores }, ["query"]),
        object({ query, top_k: k }, ["query", "top_k"]),
        object({ query, k }, ["query", "k"]),
      ],
    },
    RetrieveAnswer: {
      oneOf: [
        object({ result: { type: "array", items: found } }, ["result"]),
        object({ query: text, method: text, results: { type: "array" }, num_results: { type: "integer" } }, [
          "results",
        ]),
      ],
    },
    SearchRequest: object({ query, top_n: k, return_score: scores }, ["query"]),
    BatchRequest: object({ query: queries, top_n: k, return_score: scores }, ["query"]),
    SearchAnswer: { type: "array", description: "Documents; with scores the pair of documents and scores." },
    AccessRequest: object({ urls: { type: "array", items: text } }, ["urls"]),
    AccessAnswer: object(
      { result: { type: "array", items: { anyOf: [ref("Document"), { type: "null" }] } } },
      ["result"],
    ),
    RerankRequest: object(
      {
        queries,
        documents: { type: "array", items: { type: "array" } },
        rerank_topk: k,
        return_scores: scores,
      },
      ["queries", "documents"],
    ),
    Error: object({ error: text, status: { type: "integer" }, expected: text, got: text, advice: text }, [
      "error",
    ]),
  };
}
