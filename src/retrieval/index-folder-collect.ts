/**
 * The first half of a build: passages are written and hashed as they come, and turned into sorted segments, in place
 * or on a thread, after those of an earlier start.
 */
import { corpusHasher } from "../corpus/corpus-hash.ts";
import type { Passage } from "../corpus/passage.ts";
import { passageFields } from "../corpus/passage-record.ts";
import { RetrieverError } from "../errors.ts";
import { type Journal, writeJournal } from "./index-folder-journal.ts";
import { type SegmentParts, writeSegment } from "./index-folder-segments.ts";
import { PassageWriter } from "./index-folder-write.ts";
import type { Bm25Options } from "./lexical/bm25-options.ts";
import { type Segment, SegmentBuilder } from "./lexical/postings.ts";
import { SegmentThread } from "./lexical/segment-thread.ts";

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

/** A build that is under way. */
export interface Job extends Omit<BuildIndexOptions, "options"> {
  readonly options: Bm25Options;
  readonly work: string;
  /** Where the parts of the index are written. */
  readonly parts: string;
  readonly folder: string;
}

/** What the second half needs. */
export interface Collected {
  readonly corpusHash: string;
  readonly resumedPassages: number;
  readonly segments: readonly SegmentParts[];
  /** All of the corpus, where it is one segment that was never written. */
  readonly whole?: Segment;
  readonly passages: number;
  readonly passageParts: ReturnType<PassageWriter["finish"]>;
}

const MEMORY_BYTES = 256 << 20;
/** A corpus of more passages is written in segments at least from there on. */
export const THREAD_FROM = 50_000;
const PROGRESS_PASSAGES = 1000;

/** Takes all passages. Throws what they throw, `RetrieverError` for no passage or another corpus than was begun with, `FileError`. */
export async function collect(
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
