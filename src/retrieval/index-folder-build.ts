/**
 * Builds an index folder from a stream in bounded memory: passages are written as they come, postings are collected
 * up to a budget and written as sorted segments, and the segments are merged at the end, when the mean length and the
 * number of holders of each term are known. What fits into one segment is not written before. An unfinished build lies in a hidden folder beside the target; started
 * again with the same corpus and options, it reads the corpus again, checks that it is the same up to the last complete
 * segment, and goes on from there.
 *
 * Memory: the budget, 12 bytes a passage, and some megabytes a segment.
 */
import { mkdir, readdir, rename, rm, rmdir } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { setImmediate } from "node:timers/promises";
import { corpusHasher } from "../corpus/corpus-hash.ts";
import type { Passage } from "../corpus/passage.ts";
import { passageFields } from "../corpus/passage-record.ts";
import { FileError, RetrieverError } from "../errors.ts";
import { exists, fileError } from "../shared/files.ts";
import { type Journal, readJournal, writeJournal } from "./index-folder-journal.ts";
import { LOCK, lockBuild } from "./index-folder-lock.ts";
import { writeManifest } from "./index-folder-manifest.ts";
import { openSegment, readLengths, type SegmentParts, writeSegment } from "./index-folder-segments.ts";
import { PassageWriter, RowWriter, totalBytes } from "./index-folder-write.ts";
import { type Bm25Options, formulaOf, settingsOf } from "./lexical/bm25-options.ts";
import { segmentPostings } from "./lexical/memory-postings.ts";
import { mergeSegments } from "./lexical/merge-segments.ts";
import { type Segment, SegmentBuilder } from "./lexical/postings.ts";
import { SegmentThread } from "./lexical/segment-thread.ts";
import { vocabularyOf } from "./lexical/vocabulary.ts";

export interface BuildIndexOptions {
  /** As in `bm25OptionsSchema`. */
  readonly options?: Partial<Bm25Options>;
  /** About how much memory the postings of a segment may take; default 256 MiB. */
  readonly memoryBytes?: number;
  /** Stops the build with its reason; the next start goes on after the last complete segment. */
  readonly signal?: AbortSignal | undefined;
  /** Passages after which the analysis goes on in a thread of its own; default 50,000. */
  readonly threadFrom?: number;
  /** Told every thousand passages, and every so often while segments are merged. */
  readonly onProgress?: (progress: BuildProgress) => void;
}

export type BuildProgress =
  | { readonly phase: "checking" | "reading"; readonly passages: number }
  | { readonly phase: "merging"; readonly passages: number; readonly terms: number };

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

const MEMORY_BYTES = 256 << 20;
const THREAD_FROM = 50_000;
const PROGRESS_PASSAGES = 1000;
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
  await requireNew(folder);
  const target = resolve(folder);
  const work = join(dirname(target), `.${basename(target)}.building`);
  const parts = join(work, "index");
  const release = await lockBuild(work, folder);
  try {
    await makeFolder(parts);
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

interface Job extends Omit<BuildIndexOptions, "options"> {
  readonly options: Bm25Options;
  readonly work: string;
  /** Where the parts of the index are written. */
  readonly parts: string;
  readonly folder: string;
}

interface Collected {
  readonly corpusHash: string;
  readonly resumedPassages: number;
  readonly segments: readonly SegmentParts[];
  /** All of the corpus, where it is one segment that was never written. */
  readonly whole?: Segment;
  readonly passages: number;
  readonly passageParts: ReturnType<PassageWriter["finish"]>;
}

async function requireNew(folder: string): Promise<void> {
  if (await exists(folder))
    throw new FileError(`${folder} exists already; choose another folder or remove it`);
}

async function makeFolder(path: string): Promise<void> {
  try {
    await mkdir(path, { recursive: true });
  } catch (cause) {
    throw fileError(`cannot write ${path}`, cause);
  }
}

/** Empties the folder of a build that is done or has nothing to continue from. */
async function removeAllButLock(work: string): Promise<void> {
  for (const name of await readdir(work).catch(() => []))
    if (name !== LOCK) await rm(join(work, name), { recursive: true, force: true });
}

async function collect(
  passages: Iterable<Passage> | AsyncIterable<Passage>,
  job: Job,
  journal: Journal | undefined,
): Promise<Collected> {
  const hasher = corpusHasher();
  const writer = new PassageWriter(job.parts, journal?.passageBytes);
  const collector = new Collector(job, writer, journal);
  try {
    for await (const passage of passages) {
      job.signal?.throwIfAborted();
      const fields = passageFields(passage);
      hasher.add(passage, fields);
      writer.add(passage, fields);
      const isReady = collector.add(passage);
      if (isReady !== undefined) await isReady;
    }
    const segments = await collector.finish();
    await collector.close();
    const { count } = writer;
    return {
      corpusHash: hasher.digest(),
      resumedPassages: journal?.passages ?? 0,
      ...segments,
      passages: count,
      passageParts: writer.finish(),
    };
  } finally {
    await collector.close();
    writer.close();
  }
}

/** Turns passages into segments on disk, after those of the journal. */
class Collector {
  readonly #job: Job;
  readonly #writer: PassageWriter;
  readonly #journal: Journal | undefined;
  /** In place first, since most corpora are done before a thread has started; then on a thread. */
  #builder: SegmentBuilder | SegmentThread;
  readonly #segments: SegmentParts[];

  constructor(job: Job, writer: PassageWriter, journal: Journal | undefined) {
    this.#job = job;
    this.#writer = writer;
    this.#journal = journal;
    const builder = new SegmentBuilder(job.options);
    builder.startAt(journal?.passages ?? 0);
    this.#builder = builder;
    this.#segments = [...(journal?.segments ?? [])];
  }

  /** Takes a passage that the writer has taken; a promise is to be waited for before the next. */
  add(passage: Passage): Promise<void> | undefined {
    const { count } = this.#writer;
    const known = this.#journal?.passages ?? 0;
    if (count % PROGRESS_PASSAGES === 0)
      this.#job.onProgress?.({ phase: count <= known ? "checking" : "reading", passages: count });
    if (count === known) this.#requireSame();
    if (count <= known) return undefined;
    const { memoryBytes = MEMORY_BYTES, threadFrom = THREAD_FROM } = this.#job;
    const builder = this.#builder;
    if (builder instanceof SegmentThread) {
      const isReady = builder.add(passage);
      return builder.bytes >= memoryBytes ? this.#makeRoom(isReady, true) : isReady;
    }
    builder.add(passage);
    const isFull = builder.bytes >= memoryBytes;
    return isFull || builder.passageCount === threadFrom ? this.#makeRoom(undefined, isFull) : undefined;
  }

  /** Writes what was collected; goes on in a thread where that is not because of memory. */
  async #makeRoom(isReady: Promise<void> | undefined, isFull: boolean): Promise<void> {
    await isReady;
    await this.#flush();
    if (isFull) return;
    this.#builder = new SegmentThread({ options: this.#job.options, first: this.#writer.count });
  }

  async close(): Promise<void> {
    if (this.#builder instanceof SegmentThread) await this.#builder.close();
  }

  async finish(): Promise<Pick<Collected, "segments" | "whole">> {
    if (this.#writer.count < (this.#journal?.passages ?? 0)) this.#requireSame();
    const isWhole = this.#segments.length === 0;
    if (isWhole && this.#builder.passageCount > 0) return { segments: [], whole: await this.#builder.take() };
    if (this.#builder.passageCount > 0) await this.#flush();
    if (this.#segments.length === 0)
      throw new RetrieverError("cannot index an empty corpus; expected at least one passage");
    return { segments: this.#segments };
  }

  #requireSame(): void {
    const { passages, passageBytes, passageHash } = this.#journal as Journal;
    const { count, bytes } = this.#writer;
    if (count === passages && bytes === passageBytes && this.#writer.sync() === passageHash) return;
    throw new RetrieverError(
      `${this.#job.work} holds an unfinished build of another corpus (the first ${passages} passages differ); ` +
        "give the same corpus to continue it, or remove that folder to start again",
    );
  }

  async #flush(): Promise<void> {
    const { work, options } = this.#job;
    const segment = await this.#builder.take();
    this.#segments.push(writeSegment(work, this.#segments.length, segment));
    const passageHash = this.#writer.sync();
    await writeJournal(work, {
      options,
      segments: this.#segments,
      passages: this.#writer.count,
      passageBytes: this.#writer.bytes,
      passageHash,
    });
  }
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
