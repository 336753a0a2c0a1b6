/**
 * Encodes a corpus into a folder of vectors, so that a kill costs one part at most: vectors gather in
 * `<folder>.building` (`vector-journal.ts`), and calling again goes on behind the last whole part. Parts are
 * encoded each on its own, so the bytes are the same however often the work was cut off. The finished folder appears
 * by one rename.
 */
import { readFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { corpusHasher } from "../../corpus/corpus-hash.ts";
import { ConfigError, FileError, RetrieverError } from "../../errors.ts";
import { exists, fileError, makeFolder, writeFileAtomic } from "../../shared/files.ts";
import { canonicalJson } from "../../shared/hash.ts";
import { removeAbandoned } from "../../shared/partial-files.ts";
import { lockBuild } from "../index-folder-lock.ts";
import type { PassageStore } from "../passage-store.ts";
import { type ApproximateOptions, approximateOptionsSchema } from "./approximate.ts";
import { buildGraph } from "./build-graph.ts";
import {
  DENSE_VERSION,
  type DenseManifest,
  type DensePlan,
  MANIFEST,
  manifestText,
  planSchema,
} from "./dense-manifest.ts";
import type { Encoder } from "./encoder.ts";
import { progressOf, type WorkOptions } from "./progress.ts";
import { inTurns } from "./token-ids.ts";
import { hashPart } from "./vector-file.ts";
import { JOURNAL, VectorJournal } from "./vector-journal.ts";
import { packRows, type VectorType, vectorTypeSchema } from "./vector-storage.ts";

export const denseOptionsSchema = z.strictObject({
  dtype: vectorTypeSchema.default("f16").describe("Numbers in which vectors are stored: f32, f16 or int8."),
  approximate: z
    .union([z.literal(false), approximateOptionsSchema])
    .default(false)
    .describe("Also build a graph for approximate search, and measure what it misses."),
  partSize: z
    .int()
    .min(16)
    .max(65_536)
    .default(2048)
    .describe("Passages between two points that survive a kill."),
});
export type DenseOptions = z.output<typeof denseOptionsSchema>;

export interface BuildDenseOptions extends WorkOptions {
  readonly dtype?: VectorType;
  readonly approximate?: false | Partial<ApproximateOptions>;
  readonly partSize?: number;
  /** Hash of the passages where it is known; else it is computed. */
  readonly corpusHash?: string;
  /** Further files of the finished folder: texts by name. */
  readonly files?: Readonly<Record<string, string>>;
}

/**
 * Builds the new folder `folder` (or goes on with its building) and returns its manifest. Throws `ConfigError` for bad
 * options, `RetrieverError` for an empty corpus or a failing encoder, `FileError` when `folder` exists or cannot be
 * written or something else is being built there, and the signal's reason; what was encoded is kept.
 */
export async function buildDense(
  passages: PassageStore,
  encoder: Encoder,
  { folder, ...options }: BuildDenseOptions & { readonly folder: string },
): Promise<DenseManifest> {
  const settings = settingsOf(options);
  if (passages.count === 0)
    throw new RetrieverError("cannot index an empty corpus; expected at least one passage");
  if (await exists(folder))
    throw new FileError(`${folder} exists already; choose another folder or remove it`);
  const plan: DensePlan = {
    format: "dense",
    version: DENSE_VERSION,
    encoder: planSchema.shape.encoder.parse(encoder.identity),
    dtype: settings.dtype,
    corpusHash: options.corpusHash ?? (await hashOf(passages, options.signal)),
    count: passages.count,
    partSize: settings.partSize,
  };
  const building = `${folder}.building`;
  const release = await takeFolder(building, folder);
  let manifest: DenseManifest;
  try {
    manifest = await buildIn(
      building,
      { passages, encoder, plan, approximate: settings.approximate },
      options,
    );
    for (const file of [PLAN, MANIFEST, ...Object.keys(options.files ?? {})])
      await removeAbandoned(join(building, file));
  } finally {
    await release();
  }
  return await finish(building, folder, manifest);
}

async function takeFolder(building: string, folder: string): Promise<() => Promise<void>> {
  try {
    await makeFolder(building);
  } catch (cause) {
    throw fileError(`cannot write ${building}`, cause);
  }
  return await lockBuild(building, folder);
}

async function buildIn(
  folder: string,
  work: Pick<Encoding, "passages" | "encoder" | "plan"> & Pick<DenseOptions, "approximate">,
  options: BuildDenseOptions,
): Promise<DenseManifest> {
  const { plan } = work;
  await claim(folder, plan);
  const file = `vectors.${plan.dtype}`;
  await encodeAll({ ...work, folder, file }, options);
  const vectors = await hashPart(folder, file);
  const approximate =
    work.approximate && (await buildGraph({ ...work, vectors, folder }, work.approximate, options));
  const manifest: DenseManifest = { ...plan, vectors, ...(approximate && { approximate }) };
  for (const [name, text] of Object.entries(options.files ?? {}))
    await writeFileAtomic(join(folder, name), text);
  await writeFileAtomic(join(folder, MANIFEST), manifestText(manifest));
  return manifest;
}

function settingsOf({ dtype, approximate, partSize }: BuildDenseOptions): DenseOptions {
  const parsed = denseOptionsSchema.safeParse({ dtype, approximate, partSize });
  if (parsed.success) return parsed.data;
  throw new ConfigError(`options of dense retrieval: ${z.prettifyError(parsed.error)}`);
}

async function hashOf(passages: PassageStore, signal: AbortSignal | undefined): Promise<string> {
  const hasher = corpusHasher();
  const positions = Array.from({ length: passages.count }, (_, position) => position);
  await inTurns(positions, (position) => hasher.add(passages.get(position)), signal);
  return hasher.digest();
}

/** Makes the folder for this plan, or checks that what was begun there is the same. */
async function claim(building: string, plan: DensePlan): Promise<void> {
  const path = join(building, PLAN);
  if (!(await exists(path))) return await writeFileAtomic(path, canonicalJson(plan));
  let found: string;
  try {
    found = await readFile(path, "utf8");
  } catch (cause) {
    throw fileError(`cannot read ${path}`, cause);
  }
  if (found !== canonicalJson(plan))
    throw new FileError(
      `${building} holds an unfinished build of other vectors (another encoder, corpus or type of numbers); ` +
        "finish it with its own settings, or remove that folder and start again",
    );
}

const PLAN = "plan.json";

interface Encoding {
  readonly passages: PassageStore;
  readonly encoder: Encoder;
  readonly plan: DensePlan;
  readonly folder: string;
  readonly file: string;
}

async function encodeAll(work: Encoding, options: BuildDenseOptions): Promise<void> {
  const { passages, encoder, plan } = work;
  const { signal } = options;
  const journal = await VectorJournal.open(work.folder, work.file);
  const report = progressOf("encode", { first: journal.rows, total: plan.count }, options);
  try {
    while (journal.rows < plan.count) {
      const first = journal.rows;
      const size = Math.min(plan.partSize, plan.count - first);
      const part = Array.from({ length: size }, (_, i) => passages.get(first + i));
      const onProgress = (share: number): void => report(first + share * size);
      const vectors = await encoder.encodePassages(part, { signal, onProgress });
      await journal.append(packRows(vectors, plan.encoder.dimensions, plan.dtype), size);
    }
  } finally {
    await journal.close();
  }
}

async function finish(building: string, folder: string, manifest: DenseManifest): Promise<DenseManifest> {
  try {
    await rename(building, folder);
    await removeRests(folder);
  } catch (cause) {
    throw fileError(`cannot write ${folder}`, cause);
  }
  return manifest;
}

/** Removes what only a build needs from the finished `folder`, where a kill right behind its end left it. */
export async function removeRests(folder: string): Promise<void> {
  if (!(await exists(join(folder, MANIFEST)))) return;
  for (const file of [PLAN, JOURNAL]) await rm(join(folder, file), { force: true });
}
