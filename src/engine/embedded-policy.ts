/**
 * Samples from the embedded model. Calls of `complete` overlap freely: each context becomes a job, jobs take
 * slots of a shared cache, and one loop advances all of them together, so that episodes that wait for retrieval
 * cost nothing and those that come back join the batch. What an episode's slot still holds of its earlier turns
 * is not computed again, nor what it shares with another.
 */
import { assert, PolicyError } from "../errors.ts";
import type { Completion, Context, Policy, PolicyIdentity } from "../rollout/policy.ts";
import type { Tokenizer } from "../tokenizer/tokenizer.ts";
import { tokenBytes } from "./cache-budget.ts";
import { CompletionJob, type TokenSamplingOptions } from "./completion-job.ts";
import type { DecodingModel, Extension } from "./decoding-model.ts";
import { SlotPool } from "./slot-pool.ts";

/** Prefill starts when this share of the busy slots waits for it: fewer, larger calls. */
const prefillShare = 0.25;
/** Most tokens of one prefill call, padding included, and of one sequence in it. */
const prefillTokens = 4096;
const prefillChunk = 256;

interface Entry {
  readonly job: CompletionJob;
  readonly signal: AbortSignal | undefined;
  readonly resolve: (completion: Completion) => void;
  readonly reject: (error: unknown) => void;
}

export class EmbeddedPolicy implements Policy {
  readonly identity: PolicyIdentity;
  readonly #model: DecodingModel;
  readonly #tokenizer: Tokenizer;
  readonly #pool: SlotPool<Entry>;
  #queue: Entry[] = [];
  #isRunning = false;

  constructor(setting: {
    readonly identity: PolicyIdentity;
    readonly model: DecodingModel;
    readonly tokenizer: Tokenizer;
    /** Most sequences decoded at once. */
    readonly maxSlots: number;
    /** Bytes that keys and values of all sequences may take. */
    readonly cacheMemory: number;
  }) {
    this.identity = setting.identity;
    this.#model = setting.model;
    this.#tokenizer = setting.tokenizer;
    this.#pool = new SlotPool(setting.model.model, setting);
  }

  async complete(
    contexts: readonly Context[],
    options: TokenSamplingOptions,
    signal?: AbortSignal,
  ): Promise<Completion[]> {
    signal?.throwIfAborted();
    const jobs = contexts.map((context) => this.#createJob(context, options));
    const completions = jobs.map(
      (job) =>
        new Promise<Completion>((resolve, reject) => {
          this.#queue.push({ job, signal, resolve, reject });
        }),
    );
    this.#start();
    return await Promise.all(completions);
  }

  /** Forgets the weights and all cached keys and values; to be called when the weights change. No completion may be under way. */
  invalidate(): void {
    assert(!this.#isRunning, "the weights changed while completions were being sampled");
    this.#pool.clear();
    this.#model.invalidate();
  }

  /** Gives back the memory of session and cache, which the next completion makes anew; not while one is under way. */
  async rest(): Promise<void> {
    // The loop that gave out the last completion ends in the turn after.
    await nextTurn();
    if (this.#isRunning) return;
    this.invalidate();
    await this.#model.rest();
  }

  forget(): void {
    assert(!this.#isRunning, "what is kept is forgotten between completions, not while they are sampled");
    this.#pool.clear();
  }

  #createJob(context: Context, options: TokenSamplingOptions): CompletionJob {
    const { contextLength } = this.#model.model;
    const job = new CompletionJob(context, options, { tokenizer: this.#tokenizer, contextLength });
    if (job.promptTokens === 0) throw new PolicyError("a completion needs a context of at least one token");
    if (job.promptTokens >= contextLength) {
      throw new PolicyError(
        `a context of ${job.promptTokens} tokens leaves no room in a model of ${contextLength}; shorten it or use a model with a longer context`,
      );
    }
    this.#requireMemory(job);
    return job;
  }

  #requireMemory({ promptTokens, mostTokens }: CompletionJob): void {
    const { budget } = this.#pool;
    if (budget.fits(1, mostTokens)) return;
    throw new PolicyError(
      `a context of ${promptTokens} tokens and its completion come to ${mostTokens} tokens, whose keys and values take ${mostTokens * tokenBytes(this.#model.model)} bytes; engine.cacheMemory allows ${budget.tokens} tokens. Raise it, or lower the tokens of a completion`,
    );
  }

  #start(): void {
    if (this.#isRunning) return;
    this.#isRunning = true;
    this.#loop().catch((error: unknown) => {
      const failed = [...this.#queue, ...this.#pool.entries()];
      this.#queue = [];
      this.#pool.clear();
      this.#isRunning = false;
      for (const entry of failed) entry.reject(error);
    });
  }

  async #loop(): Promise<void> {
    // Calls made in the same turn of the event loop start together.
    await nextTurn();
    while (this.#queue.length > 0 || this.#pool.busyCount > 0) {
      this.#dropAborted();
      this.#queue = this.#pool.admit(this.#queue, ({ job }) => job);
      await this.#advance();
      await nextTurn();
    }
    this.#isRunning = false;
  }

  async #advance(): Promise<void> {
    const pending = this.#pool.pending();
    if (pending.length === 0) return;
    const waiting = pending.filter(({ tokens }) => tokens.length > 1);
    const held = this.#pool.heldCount;
    const isPrefill =
      waiting.length > 0 &&
      (waiting.length === pending.length || waiting.length + held >= prefillShare * (pending.length + held));
    const extensions = isPrefill
      ? prefillBatch(waiting, this.#pool.copyTokens)
      : this.#decodingBatch(pending);
    this.#pool.reserve(extensions);
    const logprobs = await this.#model.extend(this.#pool.cache, extensions);
    const { vocabularySize } = this.#model.model;
    for (const [row, extension] of extensions.entries()) {
      const entry = this.#pool.extended(extension);
      if (!entry) continue;
      // Ids beyond the tokenizer's (a padded table) have no text and are never drawn.
      const start = row * vocabularySize;
      entry.job.advance(logprobs.subarray(start, start + this.#tokenizer.vocabularySize));
      if (entry.job.finishReason === undefined) continue;
      this.#pool.release(extension.slot);
      entry.resolve(entry.job.completion());
    }
  }

  /** One token for every slot; idle slots and those that wait for prefill take part with a token that is not kept. */
  #decodingBatch(pending: readonly Extension[]): Extension[] {
    const ready = new Map(
      pending.filter(({ tokens }) => tokens.length === 1).map((extension) => [extension.slot, extension]),
    );
    const idle = [this.#tokenizer.paddingId];
    return Array.from(
      { length: this.#pool.cache.slots },
      (_, slot) => ready.get(slot) ?? { slot, cached: 0, tokens: idle, isIdle: true },
    );
  }

  #dropAborted(): void {
    const isAborted = ({ signal, reject }: Entry): boolean => {
      if (!signal?.aborted) return false;
      reject(signal.reason);
      return true;
    };
    this.#queue = this.#queue.filter((entry) => !isAborted(entry));
    this.#pool.releaseWhere(isAborted);
  }
}

/** As many of the waiting extensions as fit into one call and into `copyTokens` for the copy of their slots, each cut to one chunk. */
function prefillBatch(waiting: readonly Extension[], copyTokens: number): Extension[] {
  const chunk = Math.min(prefillChunk, Math.max(...waiting.map(({ tokens }) => tokens.length)));
  const most = Math.max(1, Math.floor(prefillTokens / chunk));
  const batch: Extension[] = [];
  let rows = 1;
  for (const { slot, cached, tokens } of waiting) {
    rows = Math.max(rows, cached);
    if (batch.length > 0 && (batch.length === most || (batch.length + 1) * rows > copyTokens)) break;
    batch.push({ slot, cached, tokens: tokens.slice(0, chunk) });
  }
  return batch;
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
