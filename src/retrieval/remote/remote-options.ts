/** What a recipe can say about a retriever or reranker that another program serves over HTTP. */
import { z } from "zod";
import { baseUrlSchema, callOptionsShape, variableNameSchema } from "../../shared/http-options.ts";
import { dialectNames } from "./dialects.ts";

/** How calls are made, and what is remembered of their answers. */
export const retrieverCallShape = {
  ...callOptionsShape,
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
      .describe(
        "True: /health is asked before the start, and a training or evaluation makes one search, so that a server that is down or speaks another dialect is known at once.",
      ),
    ...retrieverCallShape,
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
  ...retrieverCallShape,
});

export type RemoteRerankerOptions = z.output<typeof remoteRerankerSchema>;
