/** Requests of the two dialects for one context. Pure. */
import type { Context, SamplingOptions } from "../policy.ts";
import type { EndpointOptions } from "./endpoint-options.ts";
import { messagesOf } from "./messages.ts";
import type { Profile } from "./profiles.ts";
import { stopsToSend } from "./stop-strings.ts";

/** The path below the URL, and the body that asks for one completion of `context`. */
export function requestFor(
  context: Context,
  sampling: SamplingOptions,
  { options, profile }: { readonly options: EndpointOptions; readonly profile: Profile },
): { readonly path: string; readonly body: Readonly<Record<string, unknown>> } {
  const { maxTokens, temperature, topP, topK } = sampling;
  const stop = stopsToSend(sampling.stop, profile.stopField !== undefined);
  const common = {
    model: options.model,
    temperature,
    top_p: topP,
    ...(profile.allTokens !== undefined && { top_k: topK === 0 ? profile.allTokens : topK }),
    ...profile.neutral,
    seed: context.seed,
    ...(stop.length > 0 && { stop, ...profile.keepStop }),
    ...(options.logprobs && profile.sampledIds[options.api]),
  };
  if (options.api === "completions") {
    const prompt = profile.takesIds && context.tokens !== undefined ? context.tokens : context.text;
    return { path: "/completions", body: { ...common, prompt, max_tokens: maxTokens } };
  }
  const fallback = profile.prefix === undefined ? "messages" : "prefix";
  const { messages, isOpen } = messagesOf(context, options.continuation ?? fallback);
  return {
    path: "/chat/completions",
    body: {
      ...common,
      messages,
      [profile.chatLimit]: maxTokens,
      ...(isOpen && profile.prefix),
      ...(options.thinking !== undefined && {
        chat_template_kwargs: { enable_thinking: options.thinking },
      }),
    },
  };
}
