/** One completion while it is being sampled: what is known of it so far, and when it is done. */
import type { Completion, Context, FinishReason, SamplingOptions } from "../rollout/policy.ts";
import { type Random, random } from "../shared/random.ts";
import type { Tokenizer } from "../tokenizer/tokenizer.ts";
import { isUnfiltered, sampleToken } from "./sampler.ts";

export interface TokenSamplingOptions extends SamplingOptions {
  /** The completion ends after the first of these ids as well. */
  readonly stopTokens?: readonly number[];
}

export class CompletionJob {
  readonly episode: string | undefined;
  /** Context and sampled tokens. */
  readonly tokens: number[];
  readonly promptTokens: number;
  readonly #tokenizer: Tokenizer;
  readonly #options: TokenSamplingOptions;
  readonly #chance: Random;
  readonly #contextLength: number;
  readonly #logprobs: number[] = [];
  finishReason: FinishReason | undefined;

  constructor(
    context: Context,
    options: TokenSamplingOptions,
    model: { readonly tokenizer: Tokenizer; readonly contextLength: number },
  ) {
    this.episode = context.episode;
    this.tokens = [...(context.tokens ?? model.tokenizer.encode(context.text))];
    this.promptTokens = this.tokens.length;
    this.#tokenizer = model.tokenizer;
    this.#contextLength = model.contextLength;
    this.#options = options;
    this.#chance = random(context.seed, "completion");
  }

  /** Tokens it has when it ends at its last limit. */
  get mostTokens(): number {
    return Math.min(this.#contextLength, this.promptTokens + this.#options.maxTokens);
  }

  /** The temperature at which the masses of blocks help to draw its tokens; undefined where they do not. */
  get blockTemperature(): number | undefined {
    return isUnfiltered(this.#options) ? this.#options.temperature : undefined;
  }

  /**
   * Samples the next token from its log-probabilities (V), and where they are known the masses of its blocks at
   * `blockTemperature`; decides whether the completion is done.
   */
  advance(logprobs: Float32Array, masses?: Float32Array | undefined): void {
    const token = sampleToken(logprobs, this.#options, this.#chance, masses);
    this.tokens.push(token);
    this.#logprobs.push(logprobs[token] as number);
    this.finishReason = this.#finish(token);
  }

  completion(): Completion {
    const tokens = this.tokens.slice(this.promptTokens);
    const visible = this.finishReason === "endOfText" ? tokens.slice(0, -1) : tokens;
    return {
      text: this.#tokenizer.decode(visible),
      tokens,
      logprobs: this.#logprobs,
      finishReason: this.finishReason ?? "length",
      usage: { promptTokens: this.promptTokens, completionTokens: tokens.length },
    };
  }

  #finish(token: number): FinishReason | undefined {
    const { endOfTextId, furtherEndIds } = this.#tokenizer;
    if (token === endOfTextId || furtherEndIds?.includes(token)) return "endOfText";
    if (this.#options.stopTokens?.includes(token) || this.#isStopped()) return "stop";
    const sampled = this.tokens.length - this.promptTokens;
    const isFull = sampled >= this.#options.maxTokens || this.tokens.length >= this.#contextLength;
    return isFull ? "length" : undefined;
  }

  /**
   * A stop string of n bytes ends within the last n tokens; it may straddle any number of them. One token more, since
   * some tokenizers drop a space at the start of what they decode.
   */
  #isStopped(): boolean {
    const { stop } = this.#options;
    if (stop.length === 0) return false;
    const reach = Math.max(...stop.map((text) => Buffer.byteLength(text)));
    const tail = this.tokens.slice(Math.max(this.promptTokens, this.tokens.length - reach - 1));
    const text = this.#tokenizer.decode(tail);
    return stop.some((ending) => text.includes(ending));
  }
}
