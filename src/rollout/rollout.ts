/**
 * One episode: the policy and the environment in turn. Token-in, token-out: the prompt and each observation are
 * tokenised once, the policy's ids are kept as they were sampled, and no text is tokenised again.
 *
 * A context that is full ends the episode; the prompt is never cut. A failing retriever or policy ends it with a
 * mark, never with an exception; a defect of the program does throw. Times are 0 unless a clock is given.
 */
import type { Question } from "../corpus/question.ts";
import { type Environment, openEnvironment } from "../environment/environment.ts";
import type { EnvironmentOptions } from "../environment/environment-options.ts";
import { openingTokens } from "../environment/opening.ts";
import type { StepResult } from "../environment/step-result.ts";
import type { StopReason } from "../environment/stop-reason.ts";
import { assert, PolicyError, RetrieverError } from "../errors.ts";
import type { Retriever } from "../retrieval/retriever.ts";
import { isBudgetSpent } from "../shared/budget.ts";
import { random } from "../shared/random.ts";
import type { Tokenizer } from "../tokenizer/tokenizer.ts";
import { createCondense } from "./condense.ts";
import { askGenerator, type Generator, recordPrompt } from "./generator.ts";
import type { Completion, Policy, SamplingOptions } from "./policy.ts";
import { RankedSearch, type Ranker } from "./ranked-search.ts";
import type { GeneratedAnswer, Segment, Trajectory, Turn } from "./trajectory.ts";
import { addUsage, noUsage, usageOf } from "./usage.ts";

/** Which episode to play. */
export interface RolloutRequest {
  readonly question: Question;
  /** See `Trajectory.group`. */
  readonly group: string;
  readonly sample: number;
  /** All chance of the episode comes from it; equal seeds of different samples or groups are independent. */
  readonly seed: number;
}

/** What many episodes have in common. */
export interface RolloutSetting {
  readonly policy: Policy;
  readonly retriever: Retriever;
  /** What a question is searched with, where that depends on the question; absent: `retriever`. */
  readonly retrieverFor?: ((question: Question) => Retriever) | undefined;
  /** Chooses the passages of each search among more candidates; absent: the retriever's best are shown. */
  readonly ranker?: Ranker | undefined;
  readonly environment: EnvironmentOptions;
  readonly sampling: Pick<SamplingOptions, "temperature" | "topP" | "topK">;
  /** Required for a policy that works on tokens; without one, segments have no tokens and no context limit is kept. */
  readonly tokenizer?: Tokenizer | undefined;
  /** Answers when a planner hands over; without one, as in demonstrations, the episode ends there without an answer. */
  readonly generator?: Generator | undefined;
  /** Most tokens of all segments together. */
  readonly contextLength?: number | undefined;
  /** Milliseconds of a clock that only rises, such as `performance.now`. */
  readonly now?: (() => number) | undefined;
}

export interface RolloutInput extends RolloutRequest, RolloutSetting {
  readonly signal?: AbortSignal | undefined;
}

/** Names an episode within a batch of requests. */
export function episodeName({ group, sample }: Pick<RolloutRequest, "group" | "sample">): string {
  return `${group}#${sample}`;
}

/** Plays one episode to its end. */
export async function runRollout(input: RolloutInput): Promise<Trajectory> {
  const episode = new Episode(input);
  try {
    return await episode.play();
  } catch (error) {
    if (input.signal?.aborted) return episode.finish("aborted", "stopped on request");
    // Every further search would fail too: the whole run must end, not this episode.
    if (isBudgetSpent(error)) throw error;
    if (error instanceof RetrieverError) return episode.finish("retrieverFailure", error.message);
    if (error instanceof PolicyError) return episode.finish("policyFailure", error.message);
    throw error;
  }
}

/** The state of an episode while it is played. */
class Episode {
  readonly #input: RolloutInput;
  readonly #environment: Environment;
  readonly #segments: Segment[] = [];
  readonly #turns: Turn[] = [];
  /** Text and ids of all segments. */
  #text = "";
  readonly #tokens: number[] = [];
  readonly #now: () => number;
  readonly #started: number;
  #generated: GeneratedAnswer | undefined;
  readonly #ranked: RankedSearch | undefined;
  #usage = noUsage;
  #policyMs = 0;
  #retrievalMs = 0;

  constructor(input: RolloutInput) {
    this.#input = input;
    this.#now = input.now ?? (() => 0);
    this.#started = this.#now();
    const { question, tokenizer, environment: options, ranker } = input;
    const retriever = this.#timedRetriever();
    this.#ranked =
      ranker &&
      new RankedSearch({ ...input, ranker, retriever, now: this.#now, turn: () => this.#turns.length });
    this.#environment = openEnvironment({
      question,
      tokenizer,
      options,
      retriever: this.#ranked?.retriever ?? retriever,
      condense: createCondense({
        ...input,
        episode: episodeName(input),
        onUsage: (usage) => {
          this.#usage = addUsage(this.#usage, usageOf(usage));
        },
      }),
    });
  }

  async play(): Promise<Trajectory> {
    const { signal } = this.#input;
    await this.#appendPrompt();
    for (;;) {
      signal?.throwIfAborted();
      const room = this.#room();
      if (room < 1) return this.finish("contextLimit");
      const completion = await this.#complete(room);
      this.#appendCompletion(completion);
      const result = await this.#environment.step(completion.text, signal);
      this.#turns.push(result.turn);
      if (result.handOver !== undefined) return await this.#handOver(result);
      if (result.stopReason === "answer") return this.finish("answer");
      const isCutByContext =
        completion.finishReason === "length" && room < this.#input.environment.maxTurnTokens;
      if (isCutByContext) return this.finish("contextLimit");
      if (result.stopReason !== undefined) return this.finish(result.stopReason);
      if (!this.#appendIfRoom(result.observation as string)) return this.finish("contextLimit");
    }
  }

  /** Lets the generator answer from everything up to here. */
  async #handOver({ observation, handOver }: StepResult): Promise<Trajectory> {
    const { question, generator, environment, seed, group, sample, signal } = this.#input;
    if (observation !== undefined && !this.#appendIfRoom(observation)) return this.finish("contextLimit");
    if (generator === undefined) return this.finish("answer");
    const started = this.#now();
    const record = { question, segments: this.#segments, turns: this.#turns };
    const reply = await askGenerator(
      generator,
      await recordPrompt(generator, record, environment),
      random(seed, "generator", group, sample).below(2 ** 31),
      signal,
    );
    this.#generated = { ...reply, isForced: handOver === "forced", ms: this.#now() - started };
    return this.finish("answer");
  }

  finish(stopReason: StopReason, failure?: string): Trajectory {
    const { question, group, sample } = this.#input;
    const last = this.#turns.at(-1)?.action;
    return {
      question,
      group,
      sample,
      segments: this.#segments,
      turns: this.#turns,
      answer: last?.type === "answer" ? (last.abstains ? undefined : last.answer) : this.#generated?.answer,
      stopReason,
      ...(this.#generated && { generated: this.#generated }),
      ...(failure === undefined ? {} : { failure }),
      usage: this.#usage,
      ...(this.#input.ranker?.type === "generative" && { rankings: this.#ranked?.rankings ?? [] }),
      time: {
        policyMs: this.#policyMs,
        retrievalMs: this.#retrievalMs,
        totalMs: this.#now() - this.#started,
      },
    };
  }

  async #complete(room: number): Promise<Completion> {
    const { policy, sampling, environment, tokenizer, seed, group, sample, signal } = this.#input;
    const turn = this.#turns.length;
    const context = {
      text: this.#text,
      parts: this.#segments.map(({ source, text }) => ({ source, text })),
      ...(tokenizer === undefined ? {} : { tokens: this.#tokens.slice() }),
      episode: episodeName({ group, sample }),
      seed: random(seed, "turn", group, sample, turn).below(2 ** 31),
    };
    const options = {
      ...sampling,
      maxTokens: Math.min(environment.maxTurnTokens, room),
      stop: this.#environment.codec.stopStrings,
    };
    const started = this.#now();
    try {
      const completions = await policy.complete([context], options, signal);
      const [completion] = completions;
      if (completions.length !== 1 || completion === undefined)
        throw new PolicyError(`expected one completion for one context, got ${completions.length}`);
      this.#usage = addUsage(this.#usage, usageOf(completion.usage));
      return completion;
    } finally {
      this.#policyMs += this.#now() - started;
    }
  }

  /** Tokens that still fit into the context. */
  #room(): number {
    const { tokenizer, contextLength } = this.#input;
    if (tokenizer === undefined || contextLength === undefined) return Number.POSITIVE_INFINITY;
    return contextLength - this.#tokens.length;
  }

  #append(segment: Segment): void {
    this.#segments.push(segment);
    this.#text += segment.text;
    for (const token of segment.tokens) this.#tokens.push(token);
  }

  async #appendPrompt(): Promise<void> {
    const { tokenizer, signal } = this.#input;
    const text = await this.#environment.prompt(signal);
    this.#append({
      source: "prompt",
      text,
      tokens: tokenizer === undefined ? [] : openingTokens(text, tokenizer),
    });
  }

  /** Appends an observation if the policy could write at least one token after it. */
  #appendIfRoom(text: string): boolean {
    const tokens = this.#encode(text);
    if (tokens.length >= this.#room()) return false;
    this.#append({ source: "environment", text, tokens });
    return true;
  }

  /** A policy that reports no ids (a remote one) gets those of its text; then they are not what it sampled, and it has no log-probabilities. */
  #appendCompletion({ text, tokens, logprobs, weightsStep }: Completion): void {
    assert(
      logprobs === undefined || logprobs.length === tokens?.length,
      `${logprobs?.length} log-probabilities belong to ${tokens?.length} tokens`,
    );
    this.#append({
      source: "policy",
      text,
      tokens: tokens ?? this.#encode(text),
      ...(logprobs === undefined ? {} : { logprobs }),
      ...(weightsStep === undefined ? {} : { weightsStep }),
    });
  }

  #encode(text: string): number[] {
    return this.#input.tokenizer?.encode(text) ?? [];
  }

  #timedRetriever(): Retriever {
    const { question, retrieverFor } = this.#input;
    const retriever = retrieverFor?.(question) ?? this.#input.retriever;
    return {
      identity: retriever.identity,
      retrieve: async (queries, k, signal) => {
        const started = this.#now();
        try {
          return await retriever.retrieve(queries, k, signal);
        } finally {
          this.#retrievalMs += this.#now() - started;
        }
      },
    };
  }
}
