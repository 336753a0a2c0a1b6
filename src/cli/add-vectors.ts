/** Vectors for an index that exists, with progress: what `forager index --dense` does. */
import { resolve } from "node:path";
import { UsageError } from "../errors.ts";
import { type Progress, startProgress } from "../reporting/progress.ts";
import { buildDense } from "../retrieval/dense/build-dense.ts";
import type { Recall } from "../retrieval/dense/dense-manifest.ts";
import { openIndex } from "../retrieval/index-folder.ts";
import { denseFolder, encoderReferenceFile, openEncoderReference } from "../retrieval/search-folder.ts";
import { exists } from "../shared/files.ts";
import { isHubReference } from "../shared/hub.ts";
import { processWorld } from "../training/world.ts";
import type { CommandIo } from "./command.ts";
import type { IndexSettings } from "./index-settings.ts";

/** What was made. */
export interface Vectors {
  readonly dtype: string;
  readonly encoder: string;
  /** Of approximate search, where a graph was built. */
  readonly recall?: Recall;
}

export interface VectorJob {
  /** Folder, or `hf:owner/name`. */
  readonly model: string;
  readonly approximate: boolean;
  readonly settings: Pick<IndexSettings, "dense" | "encoder">;
}

/** Encodes every passage of the index in `folder`; what an earlier start encoded is not encoded again. */
export async function addVectors(folder: string, vectors: VectorJob, io: CommandIo): Promise<Vectors> {
  const { model, approximate, settings } = vectors;
  const world = processWorld(io);
  // Absolute, so that the index is searched from any folder.
  const reference = { ...settings.encoder, model: isHubReference(model) ? model : resolve(model) };
  if (await exists(denseFolder(folder)))
    throw new UsageError(
      `index: ${folder} has vectors already; nothing is left to do with the same encoder, and another one needs an index of its own`,
    );
  const index = await openIndex(folder, { storage: "disk" });
  try {
    const encoder = await openEncoderReference(reference, world);
    try {
      let shown: { readonly stage: string; readonly progress: Progress } | undefined;
      const manifest = await buildDense(index.parts.passages, encoder, {
        ...settings.dense,
        files: encoderReferenceFile(reference),
        folder: denseFolder(folder),
        corpusHash: index.identity.corpusHash,
        approximate: approximate ? {} : false,
        threads: world.threads,
        now: io.progress.now,
        signal: io.signal,
        onProgress: ({ stage, done, total }) => {
          if (shown?.stage !== stage) {
            shown?.progress.finish();
            shown = {
              stage,
              progress: startProgress({ label: stageNames[stage], total, unit: "passages" }, io.progress),
            };
          }
          shown.progress.update(Math.floor(done));
        },
      });
      shown?.progress.finish();
      const recall = manifest.approximate?.recall;
      if (recall)
        io.print(
          `approximate search finds ${(100 * recall.value).toFixed(1)} % of the exact best ${recall.k} (${recall.queries} openings of passages as queries)`,
        );
      return { dtype: manifest.dtype, encoder: manifest.encoder.name, ...(recall && { recall }) };
    } finally {
      await encoder.close();
    }
  } finally {
    await index.close();
  }
}

const stageNames = { encode: "encoding", graph: "linking", recall: "measuring recall" } as const;
