/**
 * The graph of approximate search for vectors that are there: nothing is encoded again but the few queries by which its
 * recall is measured. The manifest names the graph only when it is whole; what a kill leaves is written over.
 */
import { join } from "node:path";
import { z } from "zod";
import { ConfigError, FileError } from "../../errors.ts";
import { writeFileAtomic } from "../../shared/files.ts";
import { lockBuild } from "../index-folder-lock.ts";
import type { PassageStore } from "../passage-store.ts";
import { type ApproximateOptions, approximateOptionsSchema } from "./approximate.ts";
import { buildGraph } from "./build-graph.ts";
import {
  checkEncoder,
  type DenseManifest,
  MANIFEST,
  manifestText,
  readDenseManifest,
} from "./dense-manifest.ts";
import { checkCorpus } from "./dense-retriever.ts";
import type { Encoder } from "./encoder.ts";
import type { WorkOptions } from "./progress.ts";

export interface AddGraphOptions extends WorkOptions {
  /** As in `approximateOptionsSchema`. */
  readonly approximate?: Partial<ApproximateOptions>;
  /** Refuse vectors of another corpus than this one. */
  readonly corpusHash?: string;
}

/**
 * Builds the graph over the finished vectors in `folder`, which are those of `passages` by `encoder`, and returns the new
 * manifest. Throws `ConfigError` for bad options; `FileError` when the folder is damaged, has a graph already or is being
 * worked on; `RetrieverError` when encoder or corpus are others; the signal's reason.
 */
export async function addGraph(
  folder: string,
  { passages, encoder }: { readonly passages: PassageStore; readonly encoder: Encoder },
  options: AddGraphOptions,
): Promise<DenseManifest> {
  const settings = approximateOptionsSchema.safeParse(options.approximate ?? {});
  if (!settings.success)
    throw new ConfigError(`options of the graph: ${z.prettifyError(settings.error)}`, {
      path: "approximate",
    });
  const release = await lockBuild(folder, folder);
  try {
    const manifest = await readDenseManifest(folder);
    if (manifest.approximate !== undefined)
      throw new FileError(
        `${folder} has a graph already; search through it, or remove ${folder} and build the vectors again for another`,
      );
    checkEncoder(folder, manifest.encoder, encoder.identity);
    checkCorpus(folder, manifest, { count: passages.count, hash: options.corpusHash });
    const { vectors, approximate: _none, ...plan } = manifest;
    const stored = { folder, plan, vectors, passages, encoder };
    const approximate = await buildGraph(stored, settings.data, options);
    const whole: DenseManifest = { ...plan, vectors, approximate };
    await writeFileAtomic(join(folder, MANIFEST), manifestText(whole));
    return whole;
  } finally {
    await release();
  }
}
