/**
 * What a server says about itself at `/health` and `/stats`. Servers of the field often have neither route, so a 404
 * there only means that it is up.
 */
import { RetrieverError } from "../../errors.ts";
import type { Endpoint } from "../../shared/endpoint.ts";
import { excerpt, fetchReply, type HttpPolicy, redact } from "../../shared/http.ts";
import type { NetworkWorld } from "../../shared/network-world.ts";
import { isFields } from "./document.ts";

export type Facts = Readonly<Record<string, string | number | boolean>>;

interface Context {
  readonly policy: HttpPolicy;
  readonly world: NetworkWorld;
  readonly signal?: AbortSignal | undefined;
}

/** Makes sure that the server answers; throws `RetrieverError` when it does not, or says that it is not well. */
export async function checkHealth(endpoint: Endpoint, context: Context): Promise<Facts> {
  for (const path of ["/health", "/healthz"]) {
    const reply = await get(endpoint, path, context);
    if (isMissing(reply.status)) continue;
    if (reply.status >= 200 && reply.status < 300) return statedFacts(parse(reply.text));
    throw new RetrieverError(
      `GET ${endpoint.url}${path}: expected status 200, got ${reply.status} ${
        reply.status === 401 || reply.status === 403
          ? "(the key is missing, wrong or without rights; name its variable with keyVariable)"
          : "(the server is not well)"
      }`,
    );
  }
  return {};
}

/** What `/stats` says of the corpus; nothing when there is no such route. */
export async function statedStats(endpoint: Endpoint, context: Context): Promise<Facts> {
  const reply = await get(endpoint, "/stats", context);
  if (isMissing(reply.status)) return {};
  if (reply.status < 200 || reply.status > 299)
    throw new RetrieverError(
      redact(
        `GET ${endpoint.url}/stats: expected status 200 or 404, got ${reply.status}: ${excerpt(reply.text)}`,
        endpoint.secrets,
      ),
    );
  return statedFacts(parse(reply.text));
}

function get(endpoint: Endpoint, path: string, { policy, ...context }: Context) {
  return fetchReply(
    { method: "GET", url: `${endpoint.url}${path}`, headers: endpoint.headers },
    policy,
    context,
  );
}

/** 400 and 422 come from catch-all routes that expect a body or a parameter. */
function isMissing(status: number): boolean {
  return [400, 404, 405, 410, 422].includes(status);
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Names that say what is searched. Counters, for which `passages` and `documents` are common names, change. */
const factNames =
  /^(corpus_?hash|index_?hash|method|corpus(_size)?|num_(documents|docs|passages)|model|encoder|index(_type|_name)?|dataset|name)$/i;

/** The scalars of a reply that say what is searched, also one or two levels down. */
function statedFacts(reply: unknown, depth = 0): Facts {
  if (!isFields(reply)) return {};
  const facts: Record<string, string | number | boolean> = {};
  for (const [key, value] of Object.entries(reply)) {
    const isScalar =
      (typeof value === "string" && value.length <= 200) ||
      typeof value === "boolean" ||
      (typeof value === "number" && Number.isFinite(value));
    if (isScalar && factNames.test(key)) facts[key] ??= value as string | number | boolean;
    else if (isFields(value) && depth < 2)
      for (const [inner, fact] of Object.entries(statedFacts(value, depth + 1))) facts[inner] ??= fact;
  }
  return facts;
}
