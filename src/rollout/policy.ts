/**
 * The policy contract: completes contexts. The embedded engine, a remote engine, an OpenAI-compatible
 * endpoint and the scripted policy implement it and pass the suite in `policy.suite.ts`.
 */

export interface PolicyIdentity {
  /** What it is, such as `embedded`, `scripted`. */
  readonly type: string;
  /** Name or hash of the weights. */
  readonly model: string;
  /** How its weights were rounded for sampling, such as `int8`; absent: they are as they were trained. */
  readonly weights?: string;
  /** Which of the weights of a model that is trained elsewhere: updates since it was opened. Absent: it has one version at a time. */
  readonly version?: number;
}

/** A stretch of a context, by who wrote it. */
export interface ContextPart {
  readonly source: "prompt" | "policy" | "environment";
  readonly text: string;
}

export interface Context {
  /** The whole text so far. */
  readonly text: string;
  /** The parts that `text` is made of, for policies that speak in messages; absent: all of it is the prompt. */
  readonly parts?: readonly ContextPart[];
  /** The same as token ids, where the policy has a tokenizer; then it wins over `text`. */
  readonly tokens?: readonly number[];
  /** Names the episode, so that a policy may keep what it computed for its earlier turns. */
  readonly episode?: string;
  /** Seed of this completion; equal weights, context and seed give the same completion. */
  readonly seed: number;
}

export interface SamplingOptions {
  /** Most tokens of one completion. */
  readonly maxTokens: number;
  /** 0 = greedy. */
  readonly temperature: number;
  /** Nucleus mass in (0, 1]; 1 = off. */
  readonly topP: number;
  /** Most likely tokens kept; 0 = all. */
  readonly topK: number;
  /** The completion ends after the first of these strings, which is part of it. */
  readonly stop: readonly string[];
}

export type FinishReason =
  /** A stop string was completed. */
  | "stop"
  /** The end-of-text token was sampled (it is the last of `tokens`, not part of `text`). */
  | "endOfText"
  /** `maxTokens` was reached. */
  | "length";

export interface Completion {
  readonly text: string;
  /** Exactly the sampled ids, in order. */
  readonly tokens?: readonly number[];
  /** Natural log-probability of each sampled id at temperature 1 over the whole vocabulary. */
  readonly logprobs?: readonly number[];
  readonly finishReason: FinishReason;
  readonly usage: CompletionUsage;
  /** Steps of the stage that were behind the weights when it was asked for; only where sampling runs ahead of training. */
  readonly weightsStep?: number;
}

export interface CompletionUsage {
  readonly promptTokens: number;
  readonly completionTokens: number;
  /** Prompt tokens that a server found in its cache, which may be cheaper; absent where it does not say. */
  readonly cachedTokens?: number;
  /** Absent where there is no price. */
  readonly dollars?: number;
}

export interface Policy {
  readonly identity: PolicyIdentity;
  /**
   * One completion for each context, in order. Calls may overlap: a policy gathers concurrent calls into
   * batches by itself. Throws `PolicyError` when it cannot answer, and the signal's reason when aborted.
   */
  complete(
    contexts: readonly Context[],
    options: SamplingOptions,
    signal?: AbortSignal,
  ): Promise<Completion[]>;
  /**
   * Forgets what it kept of earlier contexts, on which later completions may else depend in their last bits. Absent where
   * nothing is kept. No completion may be under way.
   */
  forget?(): void;
}
