/**
 * What an index will take before it is built: the first passages are indexed for real, into a temporary folder, and
 * their time and bytes are scaled to the whole corpus by the share of its bytes that they took. Vocabulary grows more slowly than the
 * corpus and passages differ from file to file, so that 20 % off is to be expected.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Passage } from "../corpus/passage.ts";
import type { Encoder } from "./dense/encoder.ts";
import { rowBytes, type VectorType } from "./dense/vector-storage.ts";
import { buildIndexFolder } from "./index-folder.ts";
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
  /** Passages that are indexed for the estimate; default 20,000. */
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
  /** What was measured. */
  readonly basis: { readonly passages: number; readonly seconds: number; readonly share: number };
  readonly dense?: {
    readonly seconds: number;
    readonly bytes: number;
    /** Passages encoded a second. */
    readonly rate: number;
  };
}

/** Enough that starting up does not count. */
const SAMPLE = 20_000;
const ENCODED = 48;
/** A Node process with the program in it, before any passage. */
const PROCESS_BYTES = 190e6;
/** Of the build, see `index-folder-build.ts`. */
const BYTES_PER_PASSAGE = 12;
/** The collected postings while they are sorted and written, as a multiple of the budget. */
const BUDGET_FACTOR = 1.3;

/** Estimates the index of a corpus. Throws what reading and indexing throw. */
export async function planIndex(input: PlanInput): Promise<IndexPlan> {
  const { memoryBytes, options, now, signal, dense } = input;
  const folder = await mkdtemp(join(tmpdir(), "forager-plan-"));
  try {
    const encoded: Passage[] = [];
    let share = 1;
    async function* sample() {
      let count = 0;
      for await (const passage of input.passages) {
        signal?.throwIfAborted();
        if (encoded.length < ENCODED) encoded.push(passage);
        yield passage;
        // What is read ahead of the sample counts as read; the error is that of one piece of a file.
        if (++count === (input.sample ?? SAMPLE)) {
          share = Math.min(1, Math.max(input.shareRead(), 1e-9));
          return;
        }
      }
    }
    const start = now();
    const built = await buildIndexFolder(sample(), join(folder, "index"), { options, memoryBytes, signal });
    const seconds = (now() - start) / 1000;
    const passages = Math.round(built.passages / share);
    return {
      passages,
      seconds: seconds / share,
      peakBytes:
        PROCESS_BYTES +
        passages * BYTES_PER_PASSAGE +
        Math.min(BUDGET_FACTOR * memoryBytes, built.bytes / share),
      bytes: Math.round(built.bytes / share),
      peakDiskBytes: Math.round((1.5 * built.bytes) / share),
      basis: { passages: built.passages, seconds, share },
      ...(dense && { dense: await planVectors(encoded, passages, { ...dense, now, signal }) }),
    };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
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
