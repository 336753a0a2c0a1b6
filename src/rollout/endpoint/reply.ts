/**
 * Replies of the two dialects, read into one form. What a server leaves out although it was asked for is a misfit, never
 * a guess.
 */
import { z } from "zod";
import type { CompletionUsage } from "../policy.ts";
import type { Profile } from "./profiles.ts";
import type { ServedEnd } from "./stop-strings.ts";

export interface Served extends ServedEnd {
  /** Ids of the sampled tokens; absent where they were not asked for. */
  readonly tokens?: readonly number[];
  /** One for each id. */
  readonly logprobs?: readonly number[];
  readonly usage: Omit<CompletionUsage, "dollars">;
}

/** A reply that cannot be used: what was expected. */
export class Misfit {
  readonly expected: string;
  constructor(expected: string) {
    this.expected = expected;
  }
}

const count = z.int().min(0);
const usageSchema = z.looseObject({
  prompt_tokens: count,
  completion_tokens: count,
  prompt_tokens_details: z.nullish(z.looseObject({ cached_tokens: z.nullish(count) })),
  // As DeepSeek and Moonshot tell it.
  prompt_cache_hit_tokens: z.nullish(count),
  cached_tokens: z.nullish(count),
});
/** As chats have it; llama.cpp has it for completions too, and the ids with it. */
const tokenListSchema = z.looseObject({
  content: z.array(z.looseObject({ token: z.string(), logprob: z.number(), id: z.exactOptional(z.int()) })),
});
const flatListSchema = z.looseObject({
  tokens: z.array(z.string()),
  token_logprobs: z.array(z.number()),
});
const choiceShape = {
  finish_reason: z.nullish(z.string()),
  stop_reason: z.nullish(z.union([z.string(), z.number()])),
  matched_stop: z.nullish(z.union([z.string(), z.number()])),
  token_ids: z.nullish(z.array(z.int())),
  logprobs: z.nullish(z.union([tokenListSchema, flatListSchema])),
};
const schemas = {
  completions: z.looseObject({
    choices: z.tuple([z.looseObject({ ...choiceShape, text: z.string() })]),
    usage: usageSchema,
  }),
  chat: z.looseObject({
    choices: z.tuple([
      z.looseObject({ ...choiceShape, message: z.looseObject({ content: z.nullish(z.string()) }) }),
    ]),
    usage: usageSchema,
  }),
};

type Choice = z.infer<z.ZodObject<typeof choiceShape, z.core.$loose>>;

export interface Reading {
  readonly api: keyof typeof schemas;
  readonly profile: Profile;
  /** Whether ids and log-probabilities were asked for. */
  readonly wantsTokens: boolean;
}

/** Reads a reply to one prompt. */
export function readReply(reply: unknown, { api, profile, wantsTokens }: Reading): Served | Misfit {
  const parsed = schemas[api].safeParse(reply);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    return new Misfit(
      `one choice with ${api === "chat" ? "message.content" : "text"}, and usage (${issue?.path.join(".") || "it"}: ${issue?.message})`,
    );
  }
  const { choices, usage } = parsed.data;
  const [choice] = choices;
  const text = "message" in choice ? textOfMessage(choice.message) : choice.text;
  const finish = choice.finish_reason;
  if (finish !== "stop" && finish !== "length")
    return new Misfit(
      "finish_reason stop or length (another means that the provider withheld or broke off the text)",
    );
  const tokens = wantsTokens ? tokensOf(choice) : {};
  if (tokens instanceof Misfit) return tokens;
  const cached =
    usage.prompt_tokens_details?.cached_tokens ?? usage.prompt_cache_hit_tokens ?? usage.cached_tokens;
  return {
    text,
    finish,
    ...(profile.stopField !== undefined && { met: choice[profile.stopField] ?? null }),
    ...tokens,
    usage: {
      promptTokens: usage.prompt_tokens,
      completionTokens: usage.completion_tokens,
      ...(typeof cached === "number" && { cachedTokens: Math.min(cached, usage.prompt_tokens) }),
    },
  };
}

function textOfMessage(message: unknown): string {
  return (message as { readonly content?: string | null }).content ?? "";
}

/** Ids and log-probabilities, which the servers tell in three ways. */
function tokensOf({ token_ids: ids, logprobs }: Choice): Pick<Served, "tokens" | "logprobs"> | Misfit {
  if (!logprobs)
    return new Misfit("logprobs, which were asked for; set model.logprobs to false if the server has none");
  const entries =
    "content" in logprobs
      ? (logprobs as z.infer<typeof tokenListSchema>).content
      : flatEntries(logprobs as z.infer<typeof flatListSchema>);
  if (entries instanceof Misfit) return entries;
  const tokens = ids ?? entries.map(({ id, token }) => id ?? idOf(token));
  if (tokens.some((id) => id === undefined))
    return new Misfit("the id of each sampled token (token_ids, id, or token_id:ID in logprobs)");
  if (tokens.length !== entries.length)
    return new Misfit(`a log-probability for each of ${tokens.length} sampled ids, got ${entries.length}`);
  return { tokens: tokens as number[], logprobs: entries.map(({ logprob }) => Math.min(0, logprob)) };
}

interface Entry {
  readonly token: string;
  readonly logprob: number;
  readonly id?: number;
}

function flatEntries({ tokens, token_logprobs }: z.infer<typeof flatListSchema>): Entry[] | Misfit {
  if (tokens.length !== token_logprobs.length)
    return new Misfit(
      `as many log-probabilities as tokens, got ${token_logprobs.length} for ${tokens.length}`,
    );
  return tokens.map((token, place) => ({ token, logprob: token_logprobs[place] as number }));
}

function idOf(token: string): number | undefined {
  const match = /^token_id:(\d+)$/.exec(token);
  return match === null ? undefined : Number(match[1]);
}
