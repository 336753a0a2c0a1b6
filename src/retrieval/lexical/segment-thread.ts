/**
 * A `SegmentBuilder` on a thread of its own: analysis takes about half of the time of a build, reading and writing the
 * other half. Passages go over in batches; a few may be under way, so that memory stays bounded.
 */
import type { Worker } from "node:worker_threads";
import { RetrieverError } from "../../errors.ts";
import { startThread } from "../../shared/start-thread.ts";
import type { PostingsOptions, Segment } from "./postings.ts";

/** What a thread is sent: texts and titles in turn, or that the segment so far is wanted. */
export type SegmentRequest = readonly string[] | "take";

/** Answers to both, in order. */
export type SegmentAnswer = { readonly bytes: number } | { readonly segment: Segment };

export interface SegmentThreadData {
  readonly options: PostingsOptions;
  /** Position of the first passage. */
  readonly first: number;
}

const PASSAGES_PER_BATCH = 512;
const BATCHES_UNDER_WAY = 4;

interface Waiting {
  readonly resolve: (answer: SegmentAnswer) => void;
  readonly reject: (error: Error) => void;
}

export class SegmentThread {
  readonly #worker: Worker;
  readonly #waiting: Waiting[] = [];
  #batch: string[] = [];
  #bytes = 0;
  #count = 0;
  #failure: Error | undefined;
  /** The answer to the batch that must be done before the next is sent. */
  readonly #underWay: Promise<SegmentAnswer>[] = [];

  constructor(data: SegmentThreadData) {
    this.#worker = startThread("segment-worker", import.meta.url, data);
    this.#worker.on("message", (answer: SegmentAnswer) => {
      if ("bytes" in answer) this.#bytes = answer.bytes;
      this.#waiting.shift()?.resolve(answer);
    });
    this.#worker.on("error", (cause) =>
      this.#fail(new RetrieverError(`the thread that indexes failed: ${cause.message}`, { cause })),
    );
    this.#worker.on("exit", (code) => {
      this.#fail(new RetrieverError(`the thread that indexes ended with code ${code}`));
    });
  }

  /** Passages added since the start or the last `take`. */
  get passageCount(): number {
    return this.#count;
  }

  /** About how much memory `take` will need, as of the last batch that was done. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Resolves when there is room for more. */
  async add({ title, text }: { readonly title: string; readonly text: string }): Promise<void> {
    this.#batch.push(title, text);
    this.#count++;
    if (this.#batch.length === 2 * PASSAGES_PER_BATCH) await this.#sendBatch();
  }

  /** The passages added, sorted by term; the builder starts again with the passage that follows. */
  async take(): Promise<Segment> {
    await this.#sendBatch();
    const answer = await this.#ask("take");
    this.#underWay.length = 0;
    this.#bytes = 0;
    this.#count = 0;
    if (!("segment" in answer)) throw new Error("Assertion failed: a segment was asked for");
    return answer.segment;
  }

  async close(): Promise<void> {
    this.#fail(new RetrieverError("the build was stopped"));
    await this.#worker.terminate();
  }

  async #sendBatch(): Promise<void> {
    if (this.#batch.length === 0) return;
    const answer = this.#ask(this.#batch);
    // Who waits for it handles a failure; it may also come while nobody does.
    answer.catch(() => undefined);
    this.#underWay.push(answer);
    this.#batch = [];
    if (this.#underWay.length > BATCHES_UNDER_WAY) await this.#underWay.shift();
  }

  #ask(request: SegmentRequest): Promise<SegmentAnswer> {
    return new Promise((resolve, reject) => {
      if (this.#failure !== undefined) {
        reject(this.#failure);
        return;
      }
      this.#waiting.push({ resolve, reject });
      this.#worker.postMessage(request);
    });
  }

  #fail(error: Error): void {
    this.#failure ??= error;
    for (const { reject } of this.#waiting.splice(0)) reject(this.#failure);
  }
}
