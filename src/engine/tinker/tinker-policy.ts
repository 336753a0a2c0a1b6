/**
 * Samples from one version of the weights on a Tinker server. The first completion makes a snapshot of the weights of then; later
 * ones use the same, and `identity.version` says which it is. Many samples are in flight at once, each by itself: episodes come
 * and go at their own pace, and a server batches what is there.
 */
import { EngineError, PolicyError } from "../../errors.ts";
import type { Completion, Context, Policy, PolicyIdentity, SamplingOptions } from "../../rollout/policy.ts";
import { type Limiter, runTogether } from "../../shared/concurrency.ts";
import type { JoinedSignals } from "../../shared/joined-signals.ts";
import type { Tokenizer } from "../../tokenizer/tokenizer.ts";
import { readAnswer } from "./answers.ts";
import type { Connection } from "./connection.ts";
import { settle } from "./futures.ts";
import { completionOf, samplingParams } from "./sample.ts";
import type { Sampler, SamplerSource } from "./sampler-source.ts";
import { pendingSchema, type WireAnswer, type WireRequest } from "./wire.ts";

export interface PolicyParts {
  readonly connection: Connection;
  readonly tokenizer: Tokenizer;
  readonly contextLength: number;
  readonly limiter: Limiter;
  readonly model: string;
  readonly samplers: SamplerSource;
  /** Of signals that also abort when the engine is closed. */
  readonly stopping: JoinedSignals;
}

export class TinkerPolicy implements Policy {
  readonly #parts: PolicyParts;
  #sampler: Promise<Sampler> | undefined;
  #version: number | undefined;

  constructor(parts: PolicyParts) {
    this.#parts = parts;
  }

  get identity(): PolicyIdentity {
    const { model, connection, samplers } = this.#parts;
    const { samplerPrecision: weights } = connection.profile;
    return {
      type: "tinker",
      model,
      ...(weights !== undefined && { weights }),
      version: this.#version ?? samplers.version,
    };
  }

  async complete(
    contexts: readonly Context[],
    options: SamplingOptions,
    signal?: AbortSignal,
  ): Promise<Completion[]> {
    signal?.throwIfAborted();
    if (contexts.length === 0) return [];
    const asked = contexts.map((context) => this.#ask(context, options));
    const { limiter, stopping: signals } = this.#parts;
    const stopping = signals.take(signal);
    try {
      const sampler = await this.#open();
      const tasks = asked.map(
        (ask) => (group: AbortSignal) => limiter.run(() => this.#complete(sampler, ask, group), group),
      );
      return await runTogether(tasks, { concurrency: tasks.length, signal: stopping.signal });
    } catch (error) {
      signal?.throwIfAborted();
      throw error instanceof EngineError && isOfTheSample(error)
        ? new PolicyError(error.message, { cause: error })
        : error;
    } finally {
      stopping.giveBack();
    }
  }

  async #open(): Promise<Sampler> {
    this.#sampler ??= this.#parts.samplers.open();
    try {
      const sampler = await this.#sampler;
      this.#version = sampler.version;
      return sampler;
    } catch (error) {
      this.#sampler = undefined;
      throw error;
    }
  }

  #ask(context: Context, options: SamplingOptions): Ask {
    const { tokenizer, contextLength, connection } = this.#parts;
    const { profile } = connection;
    const prompt = context.tokens ?? tokenizer.encode(context.text);
    if (prompt.length === 0) throw new PolicyError("a completion needs a context of at least one token");
    if (prompt.length >= contextLength)
      throw new PolicyError(
        `a context of ${prompt.length} tokens leaves no room in a model of ${contextLength}; shorten it or use a model with a longer context`,
      );
    const stranger = prompt.find((id) => id < 0 || id >= tokenizer.vocabularySize);
    if (stranger !== undefined)
      throw new PolicyError(
        `the context holds the id ${stranger}, the tokenizer has ${tokenizer.vocabularySize}`,
      );
    const maxTokens = Math.min(options.maxTokens, contextLength - prompt.length);
    const params = samplingParams(options, { seed: context.seed, maxTokens }, { tokenizer, profile });
    return { context, options, prompt, maxTokens, params };
  }

  async #complete(sampler: Sampler, ask: Ask, signal: AbortSignal): Promise<Completion> {
    const { samplers, tokenizer, connection } = this.#parts;
    const { prompt, params, options, maxTokens, context } = ask;
    const answer = await samplers.run(sampler, () =>
      sample(connection, {
        body: {
          sampling_session_id: sampler.sessionId,
          num_samples: 1,
          prompt: { chunks: [{ type: "encoded_text", tokens: prompt }] },
          sampling_params: params,
          prompt_logprobs: false,
          type: "sample",
        },
        seqId: () => sampler.seqId(context.episode),
        signal,
      }),
    );
    const [sequence] = answer.sequences;
    if (sequence === undefined)
      throw connection.error({ path: "asample" }, "expected one sequence, got none", "malformed");
    const { profile } = connection;
    return completionOf(sequence, options, { tokenizer, promptTokens: prompt.length, maxTokens, profile });
  }
}

interface Ask {
  readonly context: Context;
  readonly options: SamplingOptions;
  readonly prompt: readonly number[];
  readonly maxTokens: number;
  readonly params: WireRequest<"asample">["sampling_params"];
}

/** Failures of one sample among many; the others are the run's. */
function isOfTheSample({ kind }: EngineError): boolean {
  return ["rejected", "failed", "malformed", "lost", "conflict"].includes(kind);
}

/** Seconds; well below the time limit of a call, after which it is sent again. */
const preferredWait = 20;

export interface SampleCall {
  readonly body: Omit<WireRequest<"asample">, "seq_id">;
  readonly seqId: () => number;
  readonly signal?: AbortSignal | undefined;
}

/** Samples; a result that is gone, or a failure of the server's, is asked for anew under the next number. Throws `EngineError`. */
export async function sample(
  connection: Connection,
  { body, seqId, signal }: SampleCall,
): Promise<WireAnswer<"asample">> {
  const path = "asample";
  for (let attempt = 0; ; attempt++) {
    const call = {
      path,
      body: { ...body, seq_id: seqId() },
      repeat: "always",
      waitSeconds: preferredWait,
      signal,
    } as const;
    const posted = pendingSchema.safeParse(await connection.call(call));
    if (!posted.success)
      throw connection.error(
        call,
        "expected an acknowledgement with a request_id; check engine.profile",
        "malformed",
      );
    try {
      const acknowledged = posted.data;
      return readAnswer(connection, path, await settle(connection, { path, acknowledged, signal }));
    } catch (error) {
      const isLost = error instanceof EngineError && ["gone", "failed", "lost"].includes(error.kind);
      if (!isLost || attempt >= connection.options.retries) throw error;
      connection.count("resampled");
      const backoff = Math.min(10_000, connection.options.backoffMs * 2 ** attempt);
      await connection.world.sleep(backoff * (0.5 + connection.world.random()), signal);
    }
  }
}
