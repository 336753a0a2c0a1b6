/**
 * A retriever that another program serves, in any of the dialects of `dialects.ts`. Queries are deduplicated, gathered from
 * all callers into calls of the batch size and sent with bounded concurrency; one failed call fails whoever shares it.
 * The order of the server is kept; its scores must fall, since a distance taken for a score would go unnoticed.
 */
import { RetrieverError } from "../../errors.ts";
import { type Endpoint, endpointOf } from "../../shared/endpoint.ts";
import { canonicalJson, sha256 } from "../../shared/hash.ts";
import { excerpt, fetchJson, type HttpPolicy, redact } from "../../shared/http.ts";
import type { NetworkWorld } from "../../shared/network-world.ts";
import { cachedRetriever } from "../recording/cached-retriever.ts";
import type { Retriever, RetrieverIdentity, ScoredPassage } from "../retriever.ts";
import { checkK } from "../retriever.ts";
import { type Dialect, dialects, type Found, Misfit } from "./dialects.ts";
import { QueryGatherer } from "./gather-queries.ts";
import { answerDistinct, sendableQuery } from "./queries.ts";
import type { RemoteRetrieverOptions } from "./remote-options.ts";
import { checkHealth, type Facts, statedStats } from "./stated-facts.ts";

const MAX_REPLY_BYTES = 256 << 20;
/** Most bytes of a query in a URL, well below the 8 kB that common servers take for a request line. */
const MAX_URL_QUERY_BYTES = 6000;

/**
 * Connects to the server of `options` and asks it what it searches. Throws `RetrieverError` when it does not answer,
 * `ConfigError` when the key is missing.
 */
export async function createRemoteRetriever(
  options: RemoteRetrieverOptions,
  world: NetworkWorld,
  signal?: AbortSignal,
): Promise<Retriever> {
  const dialect = dialects[options.dialect];
  const endpoint = endpointOf(options, world, dialect.path);
  const policy: HttpPolicy = {
    ...options,
    error: RetrieverError,
    maxReplyBytes: MAX_REPLY_BYTES,
    secrets: endpoint.secrets,
  };
  const health = options.healthCheck ? await checkHealth(endpoint, { policy, world, signal }) : {};
  const facts = options.healthCheck
    ? { ...health, ...(await statedStats(endpoint, { policy, world, signal })) }
    : {};
  const ask = asker({ dialect, endpoint, policy }, options, world);
  const retriever: Retriever = {
    identity: identityOf(options, endpoint, facts),
    retrieve: async (queries, k, callSignal) => {
      checkK(k);
      callSignal?.throwIfAborted();
      return answerDistinct(queries, prepareQuery(options), (distinct) => ask(distinct, k, callSignal));
    },
  };
  const { cacheEntries } = options;
  return cacheEntries === undefined ? retriever : cachedRetriever(retriever, { maxEntries: cacheEntries });
}

interface Server {
  readonly dialect: Dialect;
  readonly endpoint: Endpoint;
  readonly policy: HttpPolicy;
}

function asker({ dialect, endpoint, policy }: Server, options: RemoteRetrieverOptions, world: NetworkWorld) {
  const call = async (
    queries: readonly string[],
    k: number,
    signal: AbortSignal,
  ): Promise<ScoredPassage[][]> => {
    const { path, ...request } = dialect.request(queries, k, options.index ?? "");
    const url = `${endpoint.url}${path}`;
    const reply = await fetchJson({ ...request, url, headers: endpoint.headers }, policy, { world, signal });
    const found = dialect.parse(reply, queries.length);
    if (!(found instanceof Misfit))
      return found.map((list) => scored(list.slice(0, k), options, endpoint.url));
    const came = excerpt(JSON.stringify(found.came) ?? "nothing");
    throw new RetrieverError(
      redact(
        `${request.method} ${endpoint.url}: expected ${found.expected} (dialect ${options.dialect}), got ${came}; check the dialect`,
        endpoint.secrets,
      ),
    );
  };
  const batchSize = dialect.isBatched ? options.batchSize : 1;
  const gatherer = new QueryGatherer(call, { batchSize, concurrency: options.concurrency });
  return (queries: readonly string[], k: number, signal: AbortSignal | undefined) =>
    gatherer.ask(queries, k, signal);
}

function scored(found: readonly Found[], options: RemoteRetrieverOptions, url: string): ScoredPassage[] {
  const withRanks = found.map(({ passage }, rank) => ({ passage, score: 1 / (rank + 1) }));
  if (options.scores === "rank" || found.some(({ score }) => score === undefined)) return withRanks;
  const scores = found.map(({ score }) => score as number);
  const rise = scores.findIndex((score, rank) => rank > 0 && score > (scores[rank - 1] as number));
  if (rise > 0)
    throw new RetrieverError(
      `${url}: expected scores that fall, best first, got ${scores[rise - 1]} before ${scores[rise]}; ` +
        "if the server sends distances, set scores: rank",
    );
  return found.map(({ passage }, rank) => ({ passage, score: scores[rank] as number }));
}

function prepareQuery({ dialect, maxQueryCharacters }: RemoteRetrieverOptions): (query: string) => string {
  if (dialect !== "pyserini") return (query) => sendableQuery(query, maxQueryCharacters);
  return (query) => {
    let sent = sendableQuery(query, maxQueryCharacters);
    while (encodeURIComponent(sent).length > MAX_URL_QUERY_BYTES)
      sent = sendableQuery(sent, Math.floor(sent.length * 0.8));
    return sent;
  };
}

/** What the server says, or at least where it is: two servers that say nothing are never the same corpus. */
function identityOf(options: RemoteRetrieverOptions, { url }: Endpoint, facts: Facts): RetrieverIdentity {
  const { corpusHash, corpus_hash, indexHash, index_hash, method, ...rest } = facts;
  const { dialect, index, maxQueryCharacters, scores } = options;
  const stated = Object.fromEntries(Object.entries(rest).map(([key, value]) => [`stated.${key}`, value]));
  const parameters = { url, dialect, ...(index && { index }), maxQueryCharacters, scores, ...stated };
  const own = sha256(canonicalJson([url, dialect, index, facts]));
  return {
    method: typeof method === "string" ? method : `remote ${dialect}`,
    corpusHash: String(corpusHash ?? corpus_hash ?? `unstated:${own.slice(0, 16)}`),
    indexHash: String(indexHash ?? index_hash ?? own),
    parameters,
  };
}
