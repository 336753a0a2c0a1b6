/**
 * One completion from a Tinker server, ended exactly where the embedded engine would end it. Servers stop by ids or by texts,
 * not by both, some not at the end of a text; so all ends are named, and what was sampled beyond the first is cut off.
 */
import { EngineError, PolicyError } from "../../errors.ts";
import type { Completion, FinishReason, SamplingOptions } from "../../rollout/policy.ts";
import type { Tokenizer } from "../../tokenizer/tokenizer.ts";
import type { Profile } from "./profiles.ts";
import type { WireAnswer, WireRequest } from "./wire.ts";

type Sampled = WireAnswer<"asample">["sequences"][number];
type SamplingParams = WireRequest<"asample">["sampling_params"];

/** Seeds of the protocol are integers below this. */
const seedLimit = 2 ** 31;

/** What the server is asked for. */
export function samplingParams(
  options: SamplingOptions,
  { seed, maxTokens }: { readonly seed: number; readonly maxTokens: number },
  { tokenizer, profile }: { readonly tokenizer: Tokenizer; readonly profile: Profile },
): SamplingParams {
  const { temperature, topP, topK } = options;
  const stop = stopsOf(options.stop, tokenizer, profile);
  return {
    max_tokens: maxTokens,
    seed: Math.abs(Math.trunc(seed)) % seedLimit,
    temperature,
    top_p: topP,
    top_k: topK === 0 ? -1 : topK,
    ...(stop !== undefined && { stop }),
  };
}

/** Ids where the text may end anywhere but at a text; else texts, with those of the ids that have one. */
function stopsOf(
  texts: readonly string[],
  tokenizer: Tokenizer,
  { needsEnds }: Profile,
): readonly number[] | string[] | undefined {
  const ends = needsEnds ? endIds(tokenizer) : [];
  if (texts.length === 0) return ends.length === 0 ? undefined : ends;
  const spelt = ends.map((id) => tokenizer.decode([id])).filter((text) => text !== "");
  return [...new Set([...texts, ...spelt])];
}

function endIds({ endOfTextId, furtherEndIds = [] }: Tokenizer): number[] {
  return [endOfTextId, ...furtherEndIds];
}

/** The completion that a server's sequence holds. Throws `PolicyError` for one that ends where nothing ends. */
export function completionOf(
  sampled: Sampled,
  options: SamplingOptions,
  {
    tokenizer,
    promptTokens,
    maxTokens,
    profile,
  }: {
    readonly tokenizer: Tokenizer;
    readonly promptTokens: number;
    readonly maxTokens: number;
    readonly profile: Profile;
  },
): Completion {
  const { tokens, finishReason } = cut(sampled, options, { tokenizer, maxTokens });
  const logprobs = comparableLogprobs(sampled, options, profile)?.slice(0, tokens.length);
  const visible = finishReason === "endOfText" ? tokens.slice(0, -1) : tokens;
  return {
    text: tokenizer.decode(visible),
    tokens,
    ...(logprobs && { logprobs }),
    finishReason,
    usage: { promptTokens, completionTokens: tokens.length },
  };
}

/** Contract: those at temperature 1 over the whole vocabulary. What a server tells of something else is left out. */
function comparableLogprobs(
  { tokens, logprobs }: Sampled,
  { temperature, topP, topK }: SamplingOptions,
  profile: Profile,
): readonly number[] | undefined {
  if (!logprobs) return undefined;
  if (logprobs.length !== tokens.length)
    throw new EngineError(
      `a log-probability for each of ${tokens.length} sampled tokens was expected, the server told ${logprobs.length}; check engine.profile`,
      { kind: "malformed" },
    );
  const isPlain = temperature === 1 && topP === 1 && topK === 0;
  return profile.sampledLogprobs === "raw" || isPlain ? logprobs : undefined;
}

interface Ended {
  readonly tokens: readonly number[];
  readonly finishReason: FinishReason;
}

/** The tokens up to the first end of any kind. */
function cut(
  { tokens, stop_reason }: Sampled,
  { stop }: SamplingOptions,
  { tokenizer, maxTokens }: { readonly tokenizer: Tokenizer; readonly maxTokens: number },
): Ended {
  const { vocabularySize } = tokenizer;
  const ends = new Set(endIds(tokenizer));
  const special = tokens.findIndex((id) => ends.has(id) || id >= vocabularySize);
  const isFull = special < 0 ? tokens.length >= maxTokens : special >= maxTokens;
  const written = tokens.slice(0, isFull ? maxTokens : special < 0 ? tokens.length : special);
  const stopAt = firstStop(written, stop, tokenizer);
  if (stopAt !== undefined) return { tokens: written.slice(0, stopAt), finishReason: "stop" };
  if (isFull) return { tokens: written, finishReason: "length" };
  const id = tokens[special];
  if (id !== undefined && id >= vocabularySize)
    throw new PolicyError(
      `the server sampled the id ${id}, the tokenizer has ${vocabularySize}; use the tokenizer that belongs to the model (engine.tokenizer)`,
    );
  if (id !== undefined) return { tokens: tokens.slice(0, special + 1), finishReason: "endOfText" };
  if (tokens.length > 0 && stop_reason === "length") return { tokens, finishReason: "length" };
  throw new PolicyError(
    `the server ended a completion after ${tokens.length} tokens, of which the last (${tokens.at(-1) ?? "none"}) ends nothing here; use the tokenizer that belongs to the model (engine.tokenizer)`,
  );
}

/**
 * How many tokens it takes to complete the first stop text. Each token is looked at only where the text before the last token
 * holds one, since a server stops there by itself.
 */
function firstStop(
  tokens: readonly number[],
  stop: readonly string[],
  tokenizer: Tokenizer,
): number | undefined {
  const holdsStop = (part: readonly number[]): boolean => {
    const text = tokenizer.decode(part);
    return stop.some((one) => text.includes(one));
  };
  if (stop.length === 0 || tokens.length === 0) return undefined;
  const first = holdsStop(tokens.slice(0, -1)) ? 0 : tokens.length - 1;
  const reach = Math.max(...stop.map((text) => Buffer.byteLength(text)));
  for (let index = first; index < tokens.length; index++)
    // One token more than the text has bytes, since some tokenizers drop a space at the start of what they decode.
    if (holdsStop(tokens.slice(Math.max(0, index - reach), index + 1))) return index + 1;
  return undefined;
}
