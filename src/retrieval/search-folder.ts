/**
 * An index folder opened for searching: BM25, its vectors, or both fused, and a cross-encoder on top. Which encoder made
 * the vectors is written beside them (`encoder.json`), so that a folder is searched without naming it again.
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { ConfigError, FileError, RetrieverError } from "../errors.ts";
import { Closers } from "../shared/closers.ts";
import { exists, fileError } from "../shared/files.ts";
import { canonicalJson } from "../shared/hash.ts";
import type { HubOptions } from "../shared/hub.ts";
import { crossEncoderOptionsSchema, openCrossEncoder } from "./dense/cross-encoder.ts";
import { openDense } from "./dense/dense-retriever.ts";
import type { Encoder } from "./dense/encoder.ts";
import { encoderOptionsSchema } from "./dense/encoder-options.ts";
import { locateModel } from "./dense/model-files.ts";
import { openEncoder } from "./dense/onnx-encoder.ts";
import { hybridOptionsSchema, hybridRetriever } from "./hybrid.ts";
import { openIndex } from "./index-folder.ts";
import type { Bm25Index } from "./lexical/bm25.ts";
import { type Reranker, rerankingRetriever } from "./rerank.ts";
import type { Retriever } from "./retriever.ts";

const model = z
  .string()
  .min(1)
  .describe("Folder with an ONNX model and tokenizer.json, or hf:owner/name[@revision].");

/** An encoder and how it is used. */
export const encoderReferenceSchema = encoderOptionsSchema.extend({ model });
export type EncoderReference = z.input<typeof encoderReferenceSchema>;

const rerankerSchema = crossEncoderOptionsSchema.extend({
  model,
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

/** What opening needs of the world. */
export interface SearchWorld {
  readonly threads: number;
  /** Where models named `hf:…` come from. */
  readonly hub: HubOptions;
}

export interface OpenedSearch {
  readonly retriever: Retriever;
  /** The lexical index, with all passages. */
  readonly index: Bm25Index;
  /** The cross-encoder, where there is one. */
  readonly reranker?: Reranker | undefined;
  close(): Promise<void>;
}

/** Folder of the vectors within an index folder. */
export function denseFolder(folder: string): string {
  return join(folder, "dense");
}

const ENCODER_FILE = "encoder.json";
const encoderFile = (folder: string): string => join(denseFolder(folder), ENCODER_FILE);

/** The file beside the vectors that says which encoder made them, for `buildDense`. */
export function encoderReferenceFile(encoder: EncoderReference): Readonly<Record<string, string>> {
  return { [ENCODER_FILE]: `${JSON.stringify(encoder, null, 2)}\n` };
}

/** Opens an encoder of a folder or the hub. */
export async function openEncoderReference(
  reference: EncoderReference,
  world: SearchWorld,
): Promise<Encoder> {
  const { model, ...options } = reference;
  const located = await locateModel(model, options.file, world.hub);
  return await openEncoder(located.folder, { ...options, threads: world.threads, name: located.name });
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
    const close = (): Promise<void> => opened.close();
    if (settings.rerank === undefined) return { retriever: ranked, index, close };
    const { depth, ...model } = settings.rerank;
    const reranker = await openReranker(source, model);
    return { retriever: rerankingRetriever(ranked, reranker, { depth }), index, reranker, close };
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
      : canonicalJson(fusion) !== canonicalJson(usual.fusion)
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

/** The encoder of the vectors of an index: the one named, used as when they were made where nothing else is said. */
export async function encoderOf(
  folder: string,
  named: EncoderReference | undefined,
): Promise<EncoderReference> {
  if (named !== undefined && !(await exists(encoderFile(folder)))) return named;
  const recorded = await readEncoderReference(folder);
  const given = Object.fromEntries(Object.entries(named ?? {}).filter(([, value]) => value !== undefined));
  return { ...recorded, ...given };
}

async function readEncoderReference(folder: string): Promise<EncoderReference> {
  const path = encoderFile(folder);
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (cause) {
    throw fileError(`cannot read which encoder made the vectors (${path}); name it with --encoder`, cause);
  }
  try {
    return encoderReferenceSchema.parse(JSON.parse(text));
  } catch (cause) {
    throw new FileError(`${path} is damaged; name the encoder with --encoder`, { cause });
  }
}
