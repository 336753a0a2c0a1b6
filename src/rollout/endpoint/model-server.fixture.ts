/**
 * For tests: a model server on 127.0.0.1 that speaks both dialects as the named profile does. Its model is a rule: the next
 * id is drawn from a hash of the context, so that prefixes, seeds and stop strings behave as with a real one.
 */
import { random } from "../../shared/random.ts";
import { type Answer, type SeenRequest, startServer, type TestServer } from "../../shared/server.fixture.ts";
import type { Tokenizer } from "../../tokenizer/tokenizer.ts";
import { endpointSourceSchema } from "./endpoint-options.ts";
import type { Message } from "./messages.ts";
import { type ProfileName, profiles } from "./profiles.ts";

export interface ModelServer extends TestServer {
  /** The bodies of the requests that were answered. */
  readonly bodies: Readonly<Record<string, unknown>>[];
}

export interface ModelServerOptions {
  readonly tokenizer: Tokenizer;
  readonly profile: ProfileName;
  /** Says something else than the model for some requests, counted from 1. */
  readonly instead?: ((request: SeenRequest, count: number) => Answer | undefined) | undefined;
  /** Prompt tokens that the server reports as found in its cache. */
  readonly cachedTokens?: number;
}

/** Options of a policy for `url`, with their defaults. */
export function endpointOptions(url: string, given: Readonly<Record<string, unknown>> = {}) {
  return endpointSourceSchema.parse({ type: "openai", url, model: "tiny", ...given });
}

export async function startModelServer(options: ModelServerOptions): Promise<ModelServer> {
  const bodies: Readonly<Record<string, unknown>>[] = [];
  const server = await startServer((request, count) => {
    const answer = options.instead?.(request, count);
    if (answer !== undefined) return answer;
    const body = request.body as Readonly<Record<string, unknown>>;
    bodies.push(body);
    return { json: answerTo(body, options) };
  });
  return { ...server, bodies };
}

function answerTo(body: Readonly<Record<string, unknown>>, options: ModelServerOptions): unknown {
  const { tokenizer } = options;
  const prompt = Array.isArray(body.prompt)
    ? (body.prompt as number[])
    : tokenizer.encode((body.prompt as string | undefined) ?? chatText(body));
  const sampled = sample(prompt, body, tokenizer);
  const isChat = body.messages !== undefined;
  const { text, finish, stop } = sampled;
  const keeps = body.include_stop_str_in_output === true || body.no_stop_trim === true;
  const shown = stop === undefined || keeps ? text : text.slice(0, text.lastIndexOf(stop));
  const field = profiles[options.profile].stopField;
  return {
    id: "cmpl-1",
    choices: [
      {
        index: 0,
        ...(isChat ? { message: { role: "assistant", content: shown } } : { text: shown }),
        finish_reason: finish,
        ...(field !== undefined && { [field]: stop ?? null }),
        ...(body.return_token_ids === true && { token_ids: sampled.tokens }),
        ...(body.logprobs !== undefined && { logprobs: logprobsOf(sampled, { isChat, options }) }),
      },
    ],
    usage: {
      prompt_tokens: prompt.length,
      completion_tokens: sampled.tokens.length,
      ...(options.cachedTokens !== undefined && {
        prompt_tokens_details: { cached_tokens: options.cachedTokens },
      }),
    },
  };
}

/** A template without any tokens of its own. */
function chatText({ messages }: Readonly<Record<string, unknown>>): string {
  return (messages as readonly Message[]).map(({ content }) => content).join("");
}

interface Sampled {
  readonly text: string;
  readonly tokens: readonly number[];
  readonly finish: "stop" | "length";
  readonly stop?: string | undefined;
}

/** Letters, or the end of the text once in sixteen, where the choice is not greedy. */
function sample(
  prompt: readonly number[],
  body: Readonly<Record<string, unknown>>,
  tokenizer: Tokenizer,
): Sampled {
  const most = (body.max_tokens ?? body.max_completion_tokens) as number;
  const stops = (body.stop ?? []) as readonly string[];
  const seed = body.temperature === 0 ? 0 : (body.seed as number);
  const tokens: number[] = [];
  while (tokens.length < most) {
    const draw = random(seed, "model", ...[...prompt, ...tokens].slice(-8), tokens.length + prompt.length);
    if (draw.below(16) === 0 && body.temperature !== 0)
      return { ...said(tokens), tokens: [...tokens, tokenizer.endOfTextId], finish: "stop" };
    tokens.push(tokenizer.encode(String.fromCharCode(97 + draw.below(26)))[0] as number);
    const { text } = said(tokens);
    const stop = stops.find((candidate) => text.endsWith(candidate));
    if (stop !== undefined) return { text, tokens, finish: "stop", stop };
  }
  return { ...said(tokens), tokens, finish: "length" };

  function said(ids: readonly number[]) {
    return { text: tokenizer.decode(ids) };
  }
}

function logprobsOf(
  { tokens }: Sampled,
  {
    isChat,
    options: { tokenizer, profile },
  }: { readonly isChat: boolean; readonly options: ModelServerOptions },
): unknown {
  const piece = (id: number): string => (profile === "vllm" ? `token_id:${id}` : tokenizer.decode([id]));
  if (isChat || profile === "llamacpp")
    return {
      content: tokens.map((id) => ({
        token: piece(id),
        logprob: -0.5,
        ...(profile === "llamacpp" && { id }),
      })),
    };
  return { tokens: tokens.map(piece), token_logprobs: tokens.map(() => -0.5) };
}
