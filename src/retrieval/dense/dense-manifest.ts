/**
 * `dense.json` of a folder of vectors: which encoder made them from which corpus, how they are stored, and how well
 * the approximate index beside them was measured to do. Vectors stand in the order of the passages.
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { FileError, RetrieverError } from "../../errors.ts";
import { fileError } from "../../shared/files.ts";
import { partSchema } from "../part-files.ts";
import { approximateOptionsSchema } from "./approximate.ts";
import type { EncoderIdentity } from "./encoder.ts";
import { poolingSchema } from "./encoder-models.ts";
import { vectorTypeSchema } from "./vector-storage.ts";

/** Raised when the layout of the folder changes: older ones must be built again. */
export const DENSE_VERSION = 1;
export const MANIFEST = "dense.json";

const encoderSchema = z.strictObject({
  name: z.string(),
  hash: z.string(),
  dimensions: z.int().min(1),
  pooling: poolingSchema,
  queryPrefix: z.string(),
  passagePrefix: z.string(),
  normalize: z.boolean(),
  maxTokens: z.int(),
});

/** What is built; two builds with equal plans make equal bytes. */
export const planSchema = z.strictObject({
  format: z.literal("dense"),
  version: z.literal(DENSE_VERSION),
  encoder: encoderSchema,
  dtype: vectorTypeSchema,
  corpusHash: z.string(),
  count: z.int().min(1),
  /** Passages that were encoded together. */
  partSize: z.int().min(1),
});
export type DensePlan = z.output<typeof planSchema>;

const recallSchema = z.strictObject({
  /** Share of the exact best k that the approximate search found, mean over the queries. */
  value: z.number().min(0).max(1),
  /** Share of queries whose very best passage was found; lower than `value` where answers lie apart from the rest. */
  first: z.number().min(0).max(1),
  k: z.int().min(1),
  /** Openings of passages drawn from the corpus, used as queries. */
  queries: z.int().min(1),
});
export type Recall = z.output<typeof recallSchema>;

export const manifestSchema = z.strictObject({
  ...planSchema.shape,
  vectors: partSchema,
  approximate: z
    .strictObject({ options: approximateOptionsSchema, graph: partSchema, recall: recallSchema })
    .optional(),
});
export type DenseManifest = z.output<typeof manifestSchema>;

/** The manifest as it lies on disk. */
export function manifestText(manifest: DenseManifest): string {
  return `${JSON.stringify(manifest, null, 2)}\n`;
}

/** Reads and checks the manifest. Throws `FileError` when it is missing or damaged, `RetrieverError` for another version. */
export async function readDenseManifest(folder: string): Promise<DenseManifest> {
  const path = join(folder, MANIFEST);
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (cause) {
    throw fileError(`cannot read the vectors of ${folder} (${MANIFEST})`, cause);
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new FileError(`${path} is damaged: it is not JSON; remove ${folder} and build the vectors again`, {
      cause,
    });
  }
  const versioned = z.looseObject({ format: z.string(), version: z.number() }).safeParse(value);
  if (versioned.success && (versioned.data.format !== "dense" || versioned.data.version !== DENSE_VERSION))
    throw new RetrieverError(
      `${folder}: expected vectors of format dense, version ${DENSE_VERSION}, got ${versioned.data.format} of ` +
        `version ${versioned.data.version}; remove ${folder} and build them again`,
    );
  const manifest = manifestSchema.safeParse(value);
  if (manifest.success) return manifest.data;
  throw new FileError(
    `${path} is damaged: ${z.prettifyError(manifest.error)}; remove ${folder} and build the vectors again`,
  );
}

/** Throws `RetrieverError` when the vectors were not made by this encoder. */
export function checkEncoder(folder: string, built: EncoderIdentity, given: EncoderIdentity): void {
  if (built.hash === given.hash) return;
  const differing = (
    ["name", "dimensions", "pooling", "queryPrefix", "passagePrefix", "normalize", "maxTokens"] as const
  )
    .filter((key) => built[key] !== given[key])
    .map(
      (key) =>
        `${key} ${JSON.stringify(built[key])} in the index, ${JSON.stringify(given[key])} in the encoder`,
    );
  throw new RetrieverError(
    `the vectors in ${folder} were made by ${built.name} (${built.hash.slice(0, 12)}…), not by the encoder given, ` +
      `${given.name} (${given.hash.slice(0, 12)}…): ${differing.join("; ") || "another model or tokenizer file"}. ` +
      `Open them with the encoder they were made by, or build them again`,
  );
}
