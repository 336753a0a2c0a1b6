/**
 * An index folder opened for searching: BM25, its vectors, or both fused, and a cross-encoder on top.
 */
import { z } from "zod";
import { ConfigError, RetrieverError } from "../errors.ts";
import { Closers } from "../shared/closers.ts";
import { exists } from "../shared/files.ts";
import { canonicalJson } from "../shared/hash.ts";
import { crossEncoderOptionsSchema, openCrossEncoder } from "./dense/cross-encoder.ts";
import { openDense } from "./dense/dense-retriever.ts";
import { locateModel } from "./dense/model-files.ts";
import {
  denseFolder,
  encoderOf,
  encoderReferenceSchema,
  onnxModelSchema,
  openEncoderReference,
  type SearchWorld,
} from "./encoder-reference.ts";
import { hybridOptionsSchema, hybridRetriever } from "./hybrid.ts";
import { openIndex } from "./index-folder.ts";
import type { Bm25Index } from "./lexical/bm25.ts";
import { type Reranker, rerankingRetriever } from "./rerank.ts";
import type { Retriever } from "./retriever.ts";

const rerankerSchema = crossEncoderOptionsSchema.extend({
  model: onnxModelSchema,
  depth: z
    .int()
    .min(1)
    .max(10_000)
    .default(50)
    .describe("Passages that are scored again; k where that is more."),
});

export const searchOptionsSchema = z.strictObject({
  mode: z
    .enum(["auto", "bm25", "dense", "hybrid"])
    .default("auto")
    .describe("How passages are ranked; auto: hybrid where the index has vectors, else bm25."),
  storage: z
    .enum(["auto", "memory", "disk"])
    .default("auto")
    .describe("Where the lexical index is kept; auto: in memory up to 256 MiB."),
  encoder: encoderReferenceSchema
    .optional()
    .describe("The encoder of queries; absent: the one that encoded the passages."),
  approximate: z
    .boolean()
    .default(false)
    .describe("Search vectors through the graph that was built beside them, instead of all of them."),
  expansionSearch: z
    .int()
    .min(1)
    .optional()
    .describe("Candidates of a search through the graph; absent: as when it was built."),
  ...hybridOptionsSchema.shape,
  rerank: rerankerSchema.optional().describe("A cross-encoder that scores the best passages again."),
});
export type SearchOptions = z.input<typeof searchOptionsSchema>;

export interface OpenedSearch {
  readonly retriever: Retriever;
  /** The lexical index, with all passages. */
  readonly index: Bm25Index;
  /** The cross-encoder, where there is one. */
  readonly reranker?: Reranker | undefined;
  /** What people should know of how a query is searched; absent where words do not count. */
  readonly remarkOn?: ((query: string) => string | undefined) | undefined;
  close(): Promise<void>;
}

/**
 * Opens `folder` by `options`, which may say the corpus it must be of. Throws `FileError` where a part is missing or
 * damaged, `RetrieverError` where parts do not belong together or the index lacks what the mode needs.
 */
export async function openSearch(
  folder: string,
  options: SearchOptions & { readonly corpusHash?: string },
  world: SearchWorld,
): Promise<OpenedSearch> {
  const { corpusHash, ...rest } = options;
  const settings = searchOptionsSchema.parse(rest);
  const mode = await modeOf(folder, settings);
  requireUsed(folder, mode, settings);
  const opened = new Closers();
  try {
    const index = await openIndex(folder, {
      storage: settings.storage,
      threads: world.threads,
      ...(corpusHash !== undefined && { corpusHash }),
    });
    opened.defer(() => index.close());
    const source: Source = { folder, index, settings, world, opened };
    const ranked = mode === "bm25" ? index : await withVectors(source, mode);
    const remarkOn = mode === "dense" ? undefined : (query: string) => index.remarkOn(query);
    const found = { index, remarkOn, close: (): Promise<void> => opened.close() };
    if (settings.rerank === undefined) return { retriever: ranked, ...found };
    const { depth, ...model } = settings.rerank;
    const reranker = await openReranker(source, model);
    return { retriever: rerankingRetriever(ranked, reranker, { depth }), reranker, ...found };
  } catch (error) {
    await opened.close();
    throw error;
  }
}

async function modeOf(
  folder: string,
  { mode }: z.output<typeof searchOptionsSchema>,
): Promise<"bm25" | "dense" | "hybrid"> {
  const hasVectors = await exists(denseFolder(folder));
  if (mode === "auto") return hasVectors ? "hybrid" : "bm25";
  if (mode === "bm25" || hasVectors) return mode;
  throw new RetrieverError(
    `${folder} has no vectors, which ${mode} search needs; add them with forager index --out ${folder} --dense MODEL, or search by bm25`,
  );
}

/** The default until weighted fusion became it, which resolved recipes of earlier runs record. */
const FORMER_FUSION = canonicalJson({ type: "rrf", k: 60 });

/** Options that would be ignored are refused. */
function requireUsed(
  folder: string,
  mode: string,
  { encoder, approximate, expansionSearch, fusion, depth }: z.output<typeof searchOptionsSchema>,
): void {
  const usual = hybridOptionsSchema.parse({});
  const changed =
    depth !== usual.depth
      ? "depth"
      : ![canonicalJson(usual.fusion), FORMER_FUSION].includes(canonicalJson(fusion))
        ? "fusion"
        : undefined;
  if (mode !== "hybrid" && changed !== undefined)
    throw new ConfigError(`${changed} is about hybrid search, and ${folder} is searched by ${mode} alone`, {
      path: changed,
    });
  const given = encoder
    ? "encoder"
    : approximate
      ? "approximate"
      : expansionSearch
        ? "expansionSearch"
        : undefined;
  if (mode === "bm25" && given !== undefined)
    throw new ConfigError(`${given} is about vectors, and ${folder} is searched by words alone (mode bm25)`, {
      path: given,
    });
  if (expansionSearch !== undefined && !approximate)
    throw new ConfigError("expansionSearch is about the graph; search it with approximate", {
      path: "expansionSearch",
    });
}

interface Source {
  readonly folder: string;
  readonly index: Bm25Index;
  readonly settings: z.output<typeof searchOptionsSchema>;
  readonly world: SearchWorld;
  /** What must be closed in the end. */
  readonly opened: Closers;
}

async function withVectors(source: Source, mode: "dense" | "hybrid"): Promise<Retriever> {
  const { folder, index, settings, world, opened } = source;
  const reference = await encoderOf(folder, settings.encoder);
  const encoder = await openEncoderReference(reference, world);
  opened.defer(() => encoder.close());
  const { approximate, expansionSearch, fusion, depth } = settings;
  const dense = await openDense(
    denseFolder(folder),
    { passages: index.parts.passages, encoder },
    {
      threads: world.threads,
      corpusHash: index.identity.corpusHash,
      approximate,
      ...(expansionSearch !== undefined && { expansionSearch }),
    },
  );
  opened.defer(() => dense.close());
  if (mode === "dense") return dense;
  const parts = [
    { name: "bm25", retriever: index },
    { name: "dense", retriever: dense },
  ];
  return hybridRetriever(parts, { fusion, depth });
}

async function openReranker(
  { world, opened }: Source,
  { model, ...options }: Omit<z.output<typeof rerankerSchema>, "depth">,
): Promise<Reranker> {
  const { folder, name } = await locateModel(model, options.file, world.hub);
  const reranker = await openCrossEncoder(folder, { ...options, threads: world.threads, name });
  opened.defer(() => reranker.close());
  return reranker;
}
