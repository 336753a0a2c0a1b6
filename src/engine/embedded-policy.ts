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
import { prefillChunk } from "./memory-estimate.ts";
import { SlotPool } from "./slot-pool.ts";

/**
 * So many new tokens of a sequence, and no more of them than there are sequences, are run one by one beside the tokens that
 * others have sampled: runs of few tokens take longer for each.
 */
const fewTokens = 12;

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
    const few = Math.min(fewTokens, pending.length);
    const waiting = pending.filter((extension) => extension.tokens.length > few || this.#isApart(extension));
    const extensions = waiting.length > 0 ? this.#chunks(waiting) : this.#decodingBatch(pending);
    this.#pool.reserve(extensions);
    const logprobs = await this.#model.extend(this.#pool.cache, extensions);
    const ready = extensions
      .filter(({ isIdle }) => !isIdle)
      .map((extension) => ({ slot: extension.slot, entry: this.#pool.extended(extension) }));
    const rows = await this.#rows(logprobs, ready);
    for (const [index, { slot, entry }] of ready.entries()) {
      if (!entry) continue;
      entry.job.advance(...rows(index));
      if (entry.job.finishReason === undefined) continue;
      this.#pool.release(slot);
      entry.resolve(entry.job.completion());
    }
  }

  /**
   * What a job draws from, by its row: its log-probabilities, and the masses of blocks where some job draws from all tokens.
   * Ids beyond the tokenizer's (a padded table) have no text and are never drawn.
   */
  async #rows(
    logprobs: Float32Array,
    ready: readonly { readonly entry: Entry | undefined }[],
  ): Promise<(index: number) => [Float32Array, Float32Array | undefined]> {
    const temperatures = ready.map(({ entry }) => entry?.job.blockTemperature);
    const { vocabularySize: count } = this.#tokenizer;
    const masses = temperatures.some((temperature) => temperature !== undefined)
      ? await this.#model.masses.of(
          logprobs,
          temperatures.map((temperature = 1) => temperature),
          count,
        )
      : undefined;
    const { vocabularySize } = this.#model.model;
    const blocks = (masses?.length ?? 0) / ready.length;
    return (index) => [
      logprobs.subarray(index * vocabularySize, index * vocabularySize + count),
      masses?.subarray(index * blocks, (index + 1) * blocks),
    ];
  }

  /**
   * Whether the next token is the first of a text, to which attention sinks (Xiao et al., 2023): it has far larger numbers than
   * others, and where it would share a scale with them it is run apart, beside those of other texts.
   */
  #isApart({ cached }: Extension): boolean {
    return this.#model.sharesScales && cached === 0;
  }

  /** The next tokens of contexts that are being read. */
  #chunks(waiting: readonly Extension[]): Extension[] {
    const firsts = waiting.filter((extension) => this.#isApart(extension));
    return firsts.length > 0 ? firsts.map(toNext) : waiting.map(toChunk);
  }

  /** The next token of every slot that has one, and from the first to the last of them idle slots between. */
  #decodingBatch(pending: readonly Extension[]): Extension[] {
    const next = new Map(pending.map((extension) => [extension.slot, toNext(extension)]));
    const [first, last] = [pending[0], pending.at(-1)] as [Extension, Extension];
    const tokens = [this.#tokenizer.paddingId];
    return Array.from({ length: last.slot - first.slot + 1 }, (_, index) => {
      const slot = first.slot + index;
      return next.get(slot) ?? { slot, cached: this.#pool.cachedRows(slot), tokens, isIdle: true };
    });
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

const toChunk = (extension: Extension): Extension => ({
  ...extension,
  tokens: extension.tokens.slice(0, prefillChunk),
});

const toNext = (extension: Extension): Extension => ({ ...extension, tokens: extension.tokens.slice(0, 1) });

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
