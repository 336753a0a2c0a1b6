/**
 * What an index will take before it is built: the first passages are indexed for real, into a temporary folder, and
 * their time and bytes are scaled to the whole corpus by the share of its bytes that they took. The first build of a process is
 * slow, so that as many passages again are indexed for the time. Vocabulary grows more slowly than the
 * corpus and passages differ from file to file, so that 20 % off is to be expected.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Passage } from "../corpus/passage.ts";
import { RetrieverError } from "../errors.ts";
import type { Encoder } from "./dense/encoder.ts";
import { rowBytes, type VectorType } from "./dense/vector-storage.ts";
import { buildIndexFolder } from "./index-folder.ts";
import { THREAD_FROM } from "./index-folder-collect.ts";
import type { Bm25Options } from "./lexical/bm25.ts";

export interface PlanInput {
  readonly passages: AsyncIterable<Passage>;
  /** Share of the corpus, from 0 to 1, that has been read so far. */
  readonly shareRead: () => number;
  readonly options: Partial<Bm25Options>;
  /** Memory of the build for what is not on disk yet. */
  readonly memoryBytes: number;
  /** Milliseconds from any origin. */
  readonly now: () => number;
  readonly signal?: AbortSignal | undefined;
  /** Passages that are indexed for the estimate; default 20,000; up to twice as many are read. */
  readonly sample?: number;
  /** Adds vectors to the plan. */
  readonly dense?: { readonly encoder: Encoder; readonly dtype: VectorType } | undefined;
}

export interface IndexPlan {
  /** Passages of the whole corpus. */
  readonly passages: number;
  readonly seconds: number;
  readonly peakBytes: number;
  /** On disk. */
  readonly bytes: number;
  /** On disk while it is built: segments and their merged form lie side by side. */
  readonly peakDiskBytes: number;
  /** What was measured: passages of the first sample, and what they take once starting up is over. */
  readonly basis: { readonly passages: number; readonly seconds: number; readonly share: number };
  readonly dense?: {
    readonly seconds: number;
    readonly bytes: number;
    /** Passages encoded a second. */
    readonly rate: number;
  };
}

const SAMPLE = 20_000;
/** The first sample holds so many times the passages of the build that shows what starting one takes. */
const FEW = 40;
const ENCODED = 48;
/** A Node process with the program in it, before any passage. */
const PROCESS_BYTES = 190e6;
/** Segments beside the index that is merged from them: six bytes of an entry's eight, where entries are most of the index. */
const SEGMENTS_FACTOR = 1.3;
/** Of the build: hashes of ids, lengths, their arrays twice as long as they must be, the table of ids. */
const BYTES_PER_PASSAGE = 50;
/** The collected postings while they are sorted and written, as a multiple of the budget. */
const BUDGET_FACTOR = 1.3;

/** Estimates the index of a corpus. Throws what reading and indexing throw. */
export async function planIndex(input: PlanInput): Promise<IndexPlan> {
  const { memoryBytes, now, signal, dense, sample = SAMPLE } = input;
  const folder = await mkdtemp(join(tmpdir(), "forager-plan-"));
  const source = new SampleSource(input);
  try {
    const first = await source.index(sample, folder);
    if (first === undefined)
      throw new RetrieverError("cannot plan the index of an empty corpus; expected at least one passage");
    const { share } = first;
    const passages = Math.round(first.passages / share);
    const basis = { passages: first.passages, seconds: await warmSeconds(source, first, folder), share };
    const bytes = first.bytes / share;
    const inSegments = passages > THREAD_FROM || bytes > memoryBytes;
    return {
      passages,
      seconds: first.seconds - basis.seconds + basis.seconds / share,
      peakBytes: PROCESS_BYTES + passages * BYTES_PER_PASSAGE + Math.min(BUDGET_FACTOR * memoryBytes, bytes),
      bytes: Math.round(bytes),
      peakDiskBytes: Math.round(inSegments ? SEGMENTS_FACTOR * bytes : bytes),
      basis,
      ...(dense && { dense: await planVectors(source.begin, passages, { ...dense, now, signal }) }),
    };
  } finally {
    await source.close();
    await rm(folder, { recursive: true, force: true });
  }
}

interface IndexedSample {
  readonly passages: number;
  readonly bytes: number;
  readonly seconds: number;
  /** Share of the corpus that had been read by its end. */
  readonly share: number;
}

/** Passages of a corpus, indexed some at a time. */
class SampleSource {
  /** The first passages. */
  readonly begin: Passage[] = [];
  readonly #input: PlanInput;
  readonly #passages: AsyncIterator<Passage>;
  #ahead: IteratorResult<Passage> | undefined;
  #count = 0;
  #share = 1;

  constructor(input: PlanInput) {
    this.#input = input;
    this.#passages = input.passages[Symbol.asyncIterator]();
  }

  /** Indexes the next `most` passages, or what is left, below `folder`; undefined where nothing is. */
  async index(most: number, folder: string): Promise<IndexedSample | undefined> {
    const { options, memoryBytes, now, signal } = this.#input;
    const start = now();
    this.#ahead ??= await this.#passages.next();
    if (this.#ahead.done === true) return undefined;
    const place = join(folder, String(this.#count));
    const built = await buildIndexFolder(this.#take(most), place, { options, memoryBytes, signal });
    return {
      passages: built.passages,
      bytes: built.bytes,
      seconds: (now() - start) / 1000,
      share: this.#share,
    };
  }

  async close(): Promise<void> {
    await this.#passages.return?.();
  }

  async *#take(most: number): AsyncGenerator<Passage> {
    for (let taken = 0; taken < most; taken++) {
      this.#input.signal?.throwIfAborted();
      const { done, value } = this.#ahead ?? (await this.#passages.next());
      this.#ahead = done === true ? { done, value } : undefined;
      if (done === true) {
        this.#share = 1;
        return;
      }
      if (this.begin.length < ENCODED) this.begin.push(value);
      this.#count++;
      yield value;
    }
    // What is read ahead of the sample counts as read; the error is that of one piece of a file.
    this.#share = Math.min(1, Math.max(this.#input.shareRead(), 1e-9));
  }
}

/** Seconds that `first` takes once the code runs at its full speed and without starting, from what follows it; as measured where that is too little. */
async function warmSeconds(source: SampleSource, first: IndexedSample, folder: string): Promise<number> {
  const few = await source.index(Math.ceil(first.passages / FEW), folder);
  const many = await source.index(first.passages, folder);
  if (few === undefined || many === undefined || many.passages < first.passages / 2) return first.seconds;
  const rate = (many.passages - few.passages) / (many.seconds - few.seconds);
  return rate > 0 ? first.passages / rate : first.seconds;
}

async function planVectors(
  sample: readonly Passage[],
  passages: number,
  { encoder, dtype, now, signal }: NonNullable<PlanInput["dense"]> & Pick<PlanInput, "now" | "signal">,
): Promise<NonNullable<IndexPlan["dense"]>> {
  await encoder.encodePassages(sample.slice(0, 4), { signal }); // the first call makes buffers
  const start = now();
  await encoder.encodePassages(sample, { signal });
  const rate = sample.length / Math.max((now() - start) / 1000, 1e-6);
  return { seconds: passages / rate, bytes: passages * rowBytes(dtype, encoder.identity.dimensions), rate };
}
