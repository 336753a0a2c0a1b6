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
  const ends = new Set(endIds(tokenizer));
  const reach = Math.max(0, ...stop.map((text) => Buffer.byteLength(text)));
  for (const [index, id] of tokens.entries()) {
    const upTo = (reason: FinishReason): Ended => ({
      tokens: tokens.slice(0, index + 1),
      finishReason: reason,
    });
    if (id >= tokenizer.vocabularySize)
      throw new PolicyError(
        `the server sampled the id ${id}, the tokenizer has ${tokenizer.vocabularySize}; use the tokenizer that belongs to the model (engine.tokenizer)`,
      );
    if (ends.has(id)) return upTo("endOfText");
    // One token more than the text has bytes, since some tokenizers drop a space at the start of what they decode.
    const tail =
      stop.length === 0 ? "" : tokenizer.decode(tokens.slice(Math.max(0, index - reach), index + 1));
    if (stop.some((text) => tail.includes(text))) return upTo("stop");
    if (index + 1 === maxTokens) return upTo("length");
  }
  if (tokens.length > 0 && stop_reason === "length") return { tokens, finishReason: "length" };
  throw new PolicyError(
    `the server ended a completion after ${tokens.length} tokens, of which the last (${tokens.at(-1) ?? "none"}) ends nothing here; use the tokenizer that belongs to the model (engine.tokenizer)`,
  );
}
