/**
 * Builds an index folder from a stream in bounded memory: passages are written as they come, postings are collected
 * up to a budget and written as sorted segments, and the segments are merged at the end, when the mean length and the
 * number of holders of each term are known. What fits into one segment is not written before. An unfinished build lies
 * in a hidden folder beside the target; started again with the same corpus and options, it reads the corpus again, checks
 * that it is the same up to the last complete segment, and goes on from there.
 *
 * Memory: the budget and a third of it while a segment is sorted, some 50 bytes a passage, and some megabytes a segment.
 */
import { readdir, rename, rm, rmdir } from "node:fs/promises";
import { join, resolve } from "node:path";
import { setImmediate } from "node:timers/promises";
import type { Passage } from "../corpus/passage.ts";
import { FileError } from "../errors.ts";
import { exists, fileError, makeFolder } from "../shared/files.ts";
import { type BuildIndexOptions, type Collected, collect, type Job } from "./index-folder-collect.ts";
import { readJournal } from "./index-folder-journal.ts";
import { LOCK, lockBuild } from "./index-folder-lock.ts";
import { buildFolderOf, writeManifest } from "./index-folder-manifest.ts";
import { openSegment, readLengths } from "./index-folder-segments.ts";
import { RowWriter, totalBytes } from "./index-folder-write.ts";
import { formulaOf, settingsOf } from "./lexical/bm25-options.ts";
import { segmentPostings } from "./lexical/memory-postings.ts";
import { mergeSegments } from "./lexical/merge-segments.ts";
import { vocabularyOf } from "./lexical/vocabulary.ts";

export type { BuildIndexOptions, BuildProgress } from "./index-folder-collect.ts";

export interface BuiltIndex {
  readonly passages: number;
  readonly corpusHash: string;
  /** Bytes of the folder, without the manifest. */
  readonly bytes: number;
  readonly terms: number;
  readonly segments: number;
  /** Passages that an earlier, unfinished build had indexed already. */
  readonly resumedPassages: number;
}

/** Terms merged before other work gets a turn, so that an abort is noticed. */
const TERMS_PER_TURN = 4096;

/**
 * Builds the index of `passages` in the new folder `folder`. Throws `ConfigError` for options out of range; `FileError`
 * when the folder exists, another build writes it, or the disk is full; `RetrieverError` for an empty corpus and for
 * an unfinished build of another corpus or with other options; the signal's reason when aborted.
 */
export async function buildIndexFolder(
  passages: Iterable<Passage> | AsyncIterable<Passage>,
  folder: string,
  settings: BuildIndexOptions = {},
): Promise<BuiltIndex> {
  const options = settingsOf(settings.options ?? {});
  await removeRests(folder);
  await requireNew(folder);
  const target = resolve(folder);
  const work = buildFolderOf(folder);
  const parts = join(work, "index");
  const release = await lockBuild(work, folder);
  try {
    // Segments without the passages that they are of: those were moved away as a finished index.
    if (!(await exists(parts))) await removeAllButLock(work);
    await makeFolder(parts).catch((cause: unknown) => {
      throw fileError(`cannot write ${parts}`, cause);
    });
    const journal = await readJournal(work, options);
    const job: Job = { ...settings, options, work, parts, folder };
    const collected = await collect(passages, job, journal);
    const built = await merge(collected, job);
    await requireNew(folder);
    await rename(parts, target).catch((cause: unknown) => {
      throw fileError(`cannot write ${folder}`, cause);
    });
    await removeAllButLock(work);
    return built;
  } finally {
    // Under the lock: once it is released, what lies there may be another build's.
    if (!(await exists(join(work, "journal.json")))) await removeAllButLock(work);
    await release();
    await rmdir(work).catch(() => undefined);
  }
}

/** Removes what a build that was killed right behind its end left beside the finished index `folder`. Throws `FileError`. */
export async function removeRests(folder: string): Promise<void> {
  const work = buildFolderOf(folder);
  if (!(await exists(folder)) || !(await exists(work)) || (await exists(join(work, "index")))) return;
  const release = await lockBuild(work, folder);
  try {
    await removeAllButLock(work);
  } finally {
    await release();
    await rmdir(work).catch(() => undefined);
  }
}

async function requireNew(folder: string): Promise<void> {
  if (await exists(folder))
    throw new FileError(`${folder} exists already; choose another folder or remove it`);
}

/** Empties the folder of a build that is done or has nothing to continue from. */
async function removeAllButLock(work: string): Promise<void> {
  for (const name of await readdir(work).catch(() => []))
    if (name !== LOCK) await rm(join(work, name), { recursive: true, force: true });
}

async function merge(collected: Collected, job: Job): Promise<BuiltIndex> {
  const { segments, whole, corpusHash, passages } = collected;
  const writer = new RowWriter(job.parts);
  try {
    if (whole === undefined) await mergeRows(collected, job, writer);
    else {
      const formula = formulaOf(whole.lengths, job.options);
      writer.addAll(vocabularyOf(whole.terms), segmentPostings(whole, formula));
    }
    const rows = writer.finish();
    const parts = { ...collected.passageParts, ...rows.parts };
    writeManifest(job.parts, {
      options: job.options,
      corpusHash,
      counts: { passages, ...rows.counts },
      parts,
    });
    return {
      passages,
      corpusHash,
      bytes: totalBytes(parts),
      terms: rows.counts.terms,
      segments: Math.max(1, segments.length),
      resumedPassages: collected.resumedPassages,
    };
  } finally {
    writer.close();
  }
}

async function mergeRows({ segments, passages }: Collected, job: Job, writer: RowWriter): Promise<void> {
  const formula = formulaOf(readLengths(job.work, segments), job.options);
  const open = segments.map((segment) => openSegment(job.work, segment));
  try {
    let terms = 0;
    for (const row of mergeSegments(open, formula)) {
      writer.add(row);
      terms++;
      if (terms % TERMS_PER_TURN !== 0) continue;
      job.onProgress?.({ phase: "merging", passages, terms });
      await setImmediate();
      job.signal?.throwIfAborted();
    }
  } finally {
    for (const segment of open) segment.close();
  }
}
