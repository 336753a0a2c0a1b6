/**
 * A policy that says what it was told to: for tests, demonstrations and speed checks. It answers in the same
 * microtask, records its calls, and throws `PolicyError` when the script has run out. It does not sample: stop
 * strings and temperature do not change what it says.
 */
import { PolicyError } from "../errors.ts";
import type { Tokenizer } from "../tokenizer/tokenizer.ts";
import type { Completion, Context, Policy, SamplingOptions } from "./policy.ts";

/** The next turn for a context, given how many turns this episode has had before; undefined = the script has run out. */
export type Script = (context: Context, turn: number) => string | undefined;

export interface ScriptedPolicy extends Policy {
  /** Every context that was completed, in order. */
  readonly calls: readonly Context[];
}

/**
 * A list of turn texts is played anew for each episode (contexts without an episode share one). With a tokenizer, completions
 * carry the ids of the text, at most `maxTokens` of them, and log-probabilities of 0.
 */
export function scriptedPolicy(script: Script | readonly string[], tokenizer?: Tokenizer): ScriptedPolicy {
  const turnText: Script = typeof script === "function" ? script : (_, turn) => script[turn];
  const calls: Context[] = [];
  const turnsOf = new Map<string, number>();
  const next = (context: Context, options: SamplingOptions): Completion => {
    const episode = context.episode ?? "";
    const turn = turnsOf.get(episode) ?? 0;
    turnsOf.set(episode, turn + 1);
    calls.push(context);
    const text = turnText(context, turn);
    if (text === undefined)
      throw new PolicyError(
        `the script of episode "${episode}" has no turn ${turn}; add one or stop earlier`,
      );
    return complete(text, context, { tokenizer, maxTokens: options.maxTokens });
  };
  return {
    identity: { type: "scripted", model: "script" },
    calls,
    complete: async (contexts, options, signal) => {
      signal?.throwIfAborted();
      return contexts.map((context) => next(context, options));
    },
  };
}

function complete(
  text: string,
  context: Context,
  { tokenizer, maxTokens }: { tokenizer: Tokenizer | undefined; maxTokens: number },
): Completion {
  if (tokenizer === undefined)
    return { text, finishReason: "stop", usage: { promptTokens: 0, completionTokens: 0 } };
  const all = tokenizer.encode(text);
  const tokens = all.slice(0, maxTokens);
  return {
    text: all.length > maxTokens ? tokenizer.decode(tokens) : text,
    tokens,
    logprobs: tokens.map(() => 0),
    finishReason: all.length > maxTokens ? "length" : "stop",
    usage: {
      promptTokens: context.tokens?.length ?? 0,
      completionTokens: tokens.length,
    },
  };
}
