/**
 * A policy behind a server of the OpenAI protocol. Each context is one call, since the servers batch by themselves; calls are
 * bounded in number, repeated for causes that pass, and paid from a budget. It keeps nothing between calls.
 */
import { ConfigError, PolicyError } from "../../errors.ts";
import { type Amount, chargeOf, createMeter, type Meter, type Spending } from "../../shared/budget.ts";
import { createLimiter, runTogether } from "../../shared/concurrency.ts";
import { type Endpoint, endpointOf } from "../../shared/endpoint.ts";
import { excerpt, fetchJson, type HttpPolicy, redact } from "../../shared/http.ts";
import type { NetworkWorld } from "../../shared/network-world.ts";
import type { Tokenizer } from "../../tokenizer/tokenizer.ts";
import type { Completion, Context, Policy, SamplingOptions } from "../policy.ts";
import type { EndpointOptions } from "./endpoint-options.ts";
import { dollarsFor } from "./price.ts";
import { type Profile, profiles } from "./profiles.ts";
import { createPurse } from "./purse.ts";
import { Misfit, readReply, type Served } from "./reply.ts";
import { requestFor } from "./request.ts";
import { completeText } from "./stop-strings.ts";

export interface EndpointPolicy extends Policy {
  /** What was spent so far, calls whose reply was lost among it at the most they could cost. */
  spent(): Spending;
}

const MAX_REPLY_BYTES = 64 << 20;
/** Tokens that a chat template may add to a context. */
const TEMPLATE_TOKENS = 256;

interface Server {
  readonly options: EndpointOptions;
  readonly profile: Profile;
  readonly endpoint: Endpoint;
  readonly tokenizer: Tokenizer | undefined;
}

/**
 * The policy of `options`. Throws `ConfigError` when the key is missing. Completing throws `PolicyError`, and
 * `BudgetSpentError` (see `isBudgetSpent`) before a call that the budget might not cover. `tokenizer` must be the model's.
 */
export function createEndpointPolicy(
  options: EndpointOptions,
  world: NetworkWorld,
  tokenizer?: Tokenizer,
): EndpointPolicy {
  const profile: Profile = profiles[options.profile];
  const endpoint = serverOf(options, world);
  const server = { options, profile, endpoint, tokenizer };
  const meter = createMeter(options.budget, { name: "model budget", code: "policy" });
  const limiter = createLimiter(options.concurrency);
  const call = caller(server, meter, world);
  return {
    identity: { type: `${options.profile} ${options.api}`, model: `${options.model} at ${endpoint.url}` },
    spent: meter.spent,
    complete: async (contexts, sampling, signal) => {
      signal?.throwIfAborted();
      requireKnown(sampling, profile);
      const tasks = contexts.map(
        (context) => (group: AbortSignal) => limiter.run(() => call(context, sampling, group), group),
      );
      return await runTogether(tasks, { concurrency: options.concurrency, signal });
    },
  };
}

/** The server at the URL without the path of a dialect; a URL without any path gets the protocol's version. */
function serverOf({ url, apiKeyEnv, api }: EndpointOptions, world: NetworkWorld): Endpoint {
  const path = api === "chat" ? "/chat/completions" : "/completions";
  const endpoint = endpointOf({ url, keyVariable: apiKeyEnv, keyHeader: "Authorization" }, world, path);
  return new URL(endpoint.url).pathname === "/" ? { ...endpoint, url: `${endpoint.url}/v1` } : endpoint;
}

function requireKnown({ topK }: SamplingOptions, profile: Profile): void {
  if (topK > 0 && profile.allTokens === undefined)
    throw new ConfigError(
      `${profile.name} knows no top k; set topK to 0, or choose the profile of the server`,
      {
        path: "model.profile",
      },
    );
}

function caller(server: Server, meter: Meter, world: NetworkWorld) {
  const { options, endpoint } = server;
  const purse = createPurse(meter);
  const policy: HttpPolicy = {
    ...options,
    error: PolicyError,
    maxReplyBytes: MAX_REPLY_BYTES,
    secrets: endpoint.secrets,
  };
  return async (context: Context, sampling: SamplingOptions, signal: AbortSignal): Promise<Completion> => {
    const { path, body } = requestFor(context, sampling, server);
    const url = `${endpoint.url}${path}`;
    const most = mostOf(context, sampling, options);
    await purse.reserve(most, signal);
    const charge = chargeOf(meter, most);
    try {
      const counted = { ...policy, ...charge.hooks };
      const call = { method: "POST", url, headers: endpoint.headers, body } as const;
      const served = readServed(await fetchJson(call, counted, { world, signal }), url, server);
      const completion = completionOf(served, sampling, server);
      meter.settle(most, amountOf(completion));
      return completion;
    } catch (error) {
      charge.giveBack();
      throw error;
    } finally {
      purse.close();
    }
  };
}

/** The most that a completion can cost: no tokenizer makes more tokens than there are bytes. */
function mostOf(
  { text, tokens }: Context,
  { maxTokens }: SamplingOptions,
  { price }: EndpointOptions,
): Amount {
  const promptTokens = (tokens?.length ?? Buffer.byteLength(text)) + TEMPLATE_TOKENS;
  const usage = { promptTokens, completionTokens: maxTokens };
  const cost = dollarsFor(usage, price) ?? 0;
  return { calls: 1, tokens: promptTokens + maxTokens, dollars: cost };
}

function amountOf({ usage: { promptTokens, completionTokens, dollars = 0 } }: Completion): Amount {
  return { calls: 1, tokens: promptTokens + completionTokens, dollars };
}

function readServed(reply: unknown, url: string, { options, profile, endpoint }: Server): Served {
  const served = readReply(reply, { api: options.api, profile, wantsTokens: options.logprobs });
  if (!(served instanceof Misfit)) return served;
  const came = excerpt(JSON.stringify(reply) ?? "nothing");
  throw new PolicyError(
    redact(
      `POST ${url}: expected ${served.expected}, got ${came}; check model.profile (${options.profile})`,
      endpoint.secrets,
    ),
  );
}

function completionOf(
  served: Served,
  { stop, temperature }: SamplingOptions,
  { options, profile, tokenizer }: Server,
): Completion {
  const { text, finishReason, isAsServed } = completeText(served, stop);
  const dollars = dollarsFor(served.usage, options.price);
  const usage = { ...served.usage, ...(dollars !== undefined && { dollars }) };
  const whole = sampledText(served.tokens, { text, finishReason, isAsServed, tokenizer });
  if (whole === undefined) return { text, finishReason, usage };
  // Log-probabilities are those at temperature 1; greedy sampling leaves them as they are.
  const areComparable = profile.logprobs === "raw" || temperature === 0 || temperature === 1;
  return {
    text: whole,
    ...(served.tokens && { tokens: served.tokens }),
    ...(served.logprobs && areComparable && { logprobs: served.logprobs }),
    finishReason,
    usage,
  };
}

interface Ended extends Pick<Completion, "text" | "finishReason"> {
  readonly isAsServed: boolean;
  readonly tokenizer: Tokenizer | undefined;
}

/**
 * The text of the sampled ids, which may go on for some characters behind a stop string; undefined where the ids do not
 * spell the text, as those of servers that take off the stop string.
 */
function sampledText(
  tokens: readonly number[] | undefined,
  { text, finishReason, isAsServed, tokenizer }: Ended,
): string | undefined {
  if (tokens === undefined) return undefined;
  if (tokenizer === undefined) return isAsServed ? text : undefined;
  const last = tokens.at(-1);
  const ends = [tokenizer.endOfTextId, ...(tokenizer.furtherEndIds ?? [])];
  const isEnded = last !== undefined && ends.includes(last);
  if (isEnded !== (finishReason === "endOfText")) return undefined;
  const spelt = tokenizer.decode(isEnded ? tokens.slice(0, -1) : tokens);
  if (spelt === text) return text;
  const before = tokenizer.decode(tokens.slice(0, -1));
  return finishReason === "stop" && spelt.startsWith(text) && before.length < text.length ? spelt : undefined;
}
