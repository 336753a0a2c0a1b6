/**
 * Vectors for an index that exists, or a graph for vectors that exist, with progress: what `forager index --dense` and
 * `--approximate` do.
 */
import { resolve } from "node:path";
import { UsageError } from "../errors.ts";
import { type Progress, startProgress } from "../reporting/progress.ts";
import { addGraph } from "../retrieval/dense/add-graph.ts";
import { buildDense } from "../retrieval/dense/build-dense.ts";
import type { DenseManifest, Recall } from "../retrieval/dense/dense-manifest.ts";
import type { Encoder } from "../retrieval/dense/encoder.ts";
import type { WorkOptions } from "../retrieval/dense/progress.ts";
import {
  denseFolder,
  type EncoderReference,
  encoderOf,
  encoderReferenceFile,
  openEncoderReference,
} from "../retrieval/encoder-reference.ts";
import { openIndex } from "../retrieval/index-folder.ts";
import type { Bm25Index } from "../retrieval/lexical/bm25.ts";
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
export async function addVectors(
  folder: string,
  { model, approximate, settings }: VectorJob,
  io: CommandIo,
): Promise<Vectors> {
  if (await exists(denseFolder(folder)))
    throw new UsageError(
      `index: ${folder} has vectors already; nothing is left to do with the same encoder, and another one needs an index of its own`,
    );
  const reference = referenceOf(model, settings);
  return await withEncoder(folder, reference, io, async ({ index, encoder, work }) =>
    buildDense(index.parts.passages, encoder, {
      ...settings.dense,
      ...work,
      files: encoderReferenceFile(reference),
      folder: denseFolder(folder),
      corpusHash: index.identity.corpusHash,
      approximate: approximate ? {} : false,
    }),
  );
}

/**
 * Links the vectors of the index in `folder` for approximate search; the encoder is the one they were made by, which may
 * be named again by `model`. Throws `UsageError` where there are no vectors.
 */
export async function addGraphTo(
  folder: string,
  { model, settings }: { readonly model?: string | undefined } & Pick<VectorJob, "settings">,
  io: CommandIo,
): Promise<Vectors> {
  if (!(await exists(denseFolder(folder))))
    throw new UsageError(`index: ${folder} has no vectors to link; name the encoder with --dense MODEL`);
  const named = model === undefined ? undefined : referenceOf(model, settings);
  const reference = await encoderOf(folder, named);
  return await withEncoder(folder, reference, io, async ({ index, encoder, work }) =>
    addGraph(
      denseFolder(folder),
      { passages: index.parts.passages, encoder },
      { ...work, corpusHash: index.identity.corpusHash },
    ),
  );
}

/** The path is absolute, so that the index is searched from any folder. */
function referenceOf(model: string, { encoder }: Pick<IndexSettings, "encoder">): EncoderReference {
  return { ...encoder, model: isHubReference(model) ? model : resolve(model) };
}

/** Opens the encoder once before hours are spent on a corpus. Throws as opening it does. */
export async function requireEncoder(
  model: string,
  settings: Pick<IndexSettings, "encoder">,
  io: CommandIo,
): Promise<void> {
  const encoder = await openEncoderReference(referenceOf(model, settings), processWorld(io));
  await encoder.close();
}

interface Opened {
  readonly index: Bm25Index;
  readonly encoder: Encoder;
  readonly work: WorkOptions;
}

/** Opens the index and the encoder for `build`, shows how far it is, and says what came of it. */
async function withEncoder(
  folder: string,
  reference: EncoderReference,
  io: CommandIo,
  build: (opened: Opened) => Promise<DenseManifest>,
): Promise<Vectors> {
  const world = processWorld(io);
  const index = await openIndex(folder, { storage: "disk" });
  try {
    const encoder = await openEncoderReference(reference, world);
    try {
      const { onProgress, finish } = shownProgress(io);
      const { threads } = world;
      const work = { threads, now: io.progress.now, signal: io.signal, onProgress };
      const manifest = await build({ index, encoder, work });
      finish();
      return report(manifest, io);
    } finally {
      await encoder.close();
    }
  } finally {
    await index.close();
  }
}

/** A line of progress for each stage. */
function shownProgress(io: CommandIo): {
  readonly onProgress: NonNullable<WorkOptions["onProgress"]>;
  readonly finish: () => void;
} {
  let shown: { readonly stage: string; readonly progress: Progress } | undefined;
  return {
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
    finish: () => shown?.progress.finish(),
  };
}

function report({ dtype, encoder, approximate }: DenseManifest, io: CommandIo): Vectors {
  const recall = approximate?.recall;
  if (recall)
    io.print(
      `approximate search finds ${(100 * recall.value).toFixed(1)} % of the exact best ${recall.k} (${recall.queries} openings of passages as queries)`,
    );
  return { dtype, encoder: encoder.name, ...(recall && { recall }) };
}

const stageNames = { encode: "encoding", graph: "linking", recall: "measuring recall" } as const;
