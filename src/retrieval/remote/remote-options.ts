/** What a recipe can say about a retriever or reranker that another program serves over HTTP. */
import { z } from "zod";
import { dialectNames } from "./dialects.ts";

/** A base URL: http or https, without query and fragment; credentials in it become Basic authentication. */
export const baseUrlSchema = z.string().refine(
  (text) => {
    const url = URL.canParse(text) ? new URL(text) : undefined;
    return url !== undefined && /^https?:$/.test(url.protocol) && url.search === "" && url.hash === "";
  },
  { error: "must be a URL such as http://127.0.0.1:8000, without a query" },
);

export const variableNameSchema = z
  .string()
  .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, "must be the name of an environment variable");

/** How calls are made; shared by everything that goes over HTTP. */
export const callOptionsShape = {
  timeoutMs: z
    .int()
    .min(1)
    .max(300_000)
    .default(30_000)
    .describe("Milliseconds that one attempt may take, at most 300,000."),
  retries: z
    .int()
    .min(0)
    .max(20)
    .default(4)
    .describe(
      "Further attempts after a cause that passes: no connection, time-out, status 408, 425, 429 or 5xx.",
    ),
  backoffMs: z
    .int()
    .min(1)
    .default(500)
    .describe("Milliseconds before the first retry, doubled for each, with jitter; Retry-After is obeyed."),
  concurrency: z.int().min(1).max(1024).default(16).describe("Most calls in flight, and so connections."),
  cacheEntries: z
    .int()
    .min(1)
    .optional()
    .describe("Answers kept in memory, the least recently used go first; absent: none are kept."),
};

export const remoteSourceSchema = z
  .strictObject({
    type: z.literal("remote").describe("A retrieval server that another program runs."),
    url: baseUrlSchema.describe("Where it listens; the path of the dialect is added, or may stand already."),
    dialect: z
      .enum(dialectNames)
      .default("search-r1")
      .describe(
        "Format of requests and replies: `search-r1` (also verl, slime, CoSearch), `skyrl`, `rllm`, `recall`, or `pyserini`.",
      ),
    index: z.string().min(1).optional().describe("Name of the index; `pyserini` needs it, no other has it."),
    keyVariable: variableNameSchema
      .optional()
      .describe("Environment variable that holds the API key; absent: no key is sent."),
    keyHeader: z
      .string()
      .regex(/^[A-Za-z0-9-]+$/, "must be the name of a header")
      .default("Authorization")
      .describe("Header for the key; `Authorization` gets `Bearer KEY`, another the key alone."),
    batchSize: z
      .int()
      .min(1)
      .default(64)
      .describe("Most queries of one call, for dialects that take several (`search-r1`, `recall`)."),
    maxQueryCharacters: z
      .int()
      .min(1)
      .default(2000)
      .describe("Longer queries are cut to this many UTF-16 characters before they are sent."),
    scores: z
      .enum(["server", "rank"])
      .default("server")
      .describe(
        "`server`: its scores, which must fall; `rank`: 1/rank instead, for servers that send distances. Without scores it is always 1/rank.",
      ),
    healthCheck: z
      .boolean()
      .default(true)
      .describe("True: /health is asked before the start, so that a server that is down is known at once."),
    ...callOptionsShape,
  })
  .refine((options) => (options.dialect === "pyserini") === (options.index !== undefined), {
    error: "dialect pyserini needs index, and no other dialect has one",
    path: ["index"],
  });

export type RemoteRetrieverOptions = z.output<typeof remoteSourceSchema>;

export const remoteRerankerSchema = z.strictObject({
  type: z.literal("remote").describe("A rerank server that another program runs."),
  url: baseUrlSchema.describe("Where it listens; /rerank is added, or may stand already."),
  keyVariable: variableNameSchema
    .optional()
    .describe("Environment variable that holds the API key; absent: no key is sent."),
  keyHeader: z
    .string()
    .regex(/^[A-Za-z0-9-]+$/, "must be the name of a header")
    .default("Authorization")
    .describe("Header for the key; `Authorization` gets `Bearer KEY`, another the key alone."),
  batchSize: z
    .int()
    .min(1)
    .default(1)
    .describe(
      "Queries of one call; 1 also keeps apart the passages of queries on servers that rank all against all.",
    ),
  ...callOptionsShape,
});

export type RemoteRerankerOptions = z.output<typeof remoteRerankerSchema>;
