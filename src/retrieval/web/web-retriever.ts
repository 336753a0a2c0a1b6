/**
 * Web search as a retriever: results of a service become passages (id = URL), with their snippets or the text of their
 * pages. Rank decides the score (1/rank), since the services do not give comparable ones. The open web has no hash and
 * changes; whoever wants to repeat a run records it.
 */
import { RetrieverError } from "../../errors.ts";
import { type Amount, chargeOf, createMeter, type Meter, type Spending } from "../../shared/budget.ts";
import { createLimiter, createPace, runTogether } from "../../shared/concurrency.ts";
import { canonicalJson, sha256 } from "../../shared/hash.ts";
import { excerpt, fetchJson, type HttpPolicy, redact, shownUrl } from "../../shared/http.ts";
import { keyOf } from "../../shared/network-world.ts";
import { cachedRetriever } from "../recording/cached-retriever.ts";
import { answerDistinct, sendableQuery } from "../remote/queries.ts";
import type { Retriever, RetrieverIdentity, ScoredPassage } from "../retriever.ts";
import { checkK } from "../retriever.ts";
import { type Provider, providers, type SearchSettings, type WebResult } from "./providers.ts";
import { pageReader, type ReadPage, type WebWorld } from "./read-pages.ts";
import type { WebRetrieverOptions } from "./web-options.ts";

export interface WebRetriever extends Retriever {
  /** Billed calls and dollars so far, pages of Jina Reader among them. */
  spent(): Spending;
}

const MAX_REPLY_BYTES = 16 << 20;

const searchBudget = { name: "search budget", code: "retriever" } as const;

/**
 * A retriever over `options.provider`. Throws `ConfigError` when a key is missing. Retrieving throws `RetrieverError`,
 * and `BudgetSpentError` (see `isBudgetSpent`) before anything is sent that the budget does not cover.
 */
export function createWebRetriever(options: WebRetrieverOptions, world: WebWorld): WebRetriever {
  const provider = providers[options.provider];
  const variable = options.keyVariable ?? provider.keyVariable;
  const key = variable === undefined ? "" : keyOf(variable, world);
  const settings: SearchSettings = { ...options, url: shownUrl(options.url ?? provider.url), key };
  const meter = createMeter(options.budget, searchBudget);
  const pages = pageReader(options, world, meter);
  const policy: HttpPolicy = {
    ...options,
    error: RetrieverError,
    maxReplyBytes: MAX_REPLY_BYTES,
    secrets: [key, ...pages.secrets],
  };
  const search = searcher({ provider, settings, policy, meter }, options, world);
  const answer = async (query: string, k: number, signal: AbortSignal): Promise<ScoredPassage[]> => {
    const results = firstOfEach(await search(query, k, signal)).slice(0, k);
    const read = await runTogether(
      results.map((result) => (group) => pages.read(result, query, group)),
      { concurrency: results.length, signal },
    );
    return results.map((result, rank) => ({
      passage: passageOf(result, read[rank] as ReadPage),
      score: 1 / (rank + 1),
    }));
  };
  const retriever: Retriever = {
    identity: identityOf(options, settings),
    retrieve: async (queries, k, signal) => {
      checkK(k);
      signal?.throwIfAborted();
      const prepare = (query: string): string => sendableQuery(query.trim(), provider.maxQueryCharacters);
      return answerDistinct(queries, prepare, async (distinct) => {
        const calls = provider.billed(k, settings);
        const price = priceOf(options, provider);
        meter.reserve(costOf(distinct.length * calls, price));
        let started = 0;
        const start = (query: string) => (group: AbortSignal) => {
          started++;
          return answer(query, k, group);
        };
        try {
          return await runTogether(distinct.map(start), { concurrency: options.concurrency, signal });
        } catch (error) {
          meter.release(costOf((distinct.length - started) * calls, price));
          throw error;
        }
      });
    },
  };
  const { cacheEntries: maxEntries } = options;
  return { ...cachedRetriever(retriever, { maxEntries }), spent: meter.spent };
}

interface Service {
  readonly provider: Provider;
  readonly settings: SearchSettings;
  readonly policy: HttpPolicy;
  readonly meter: Meter;
}

/** Searches for one query whose calls are reserved already, and gives back what was not used of them. */
function searcher(
  { provider, settings, policy, meter }: Service,
  options: WebRetrieverOptions,
  world: WebWorld,
) {
  const limiter = createLimiter(options.concurrency);
  const pace = createPace(options.callsPerSecond ?? provider.callsPerSecond, world);
  const price = priceOf(options, provider);
  return async (query: string, wanted: number, signal: AbortSignal): Promise<readonly WebResult[]> => {
    const k = Math.min(wanted, provider.maxResults);
    const calls = provider.billed(wanted, settings);
    const charge = chargeOf(meter, costOf(calls, price));
    try {
      const reply = await limiter.run(async () => {
        await pace(signal);
        const counted: HttpPolicy = { ...policy, ...charge.hooks };
        return fetchJson(provider.request(query, k, settings), counted, { world, signal });
      }, signal);
      const results = provider.parse(reply);
      if (typeof results !== "string") return results;
      const came = excerpt(JSON.stringify(reply));
      throw new RetrieverError(redact(`${settings.url}: ${results}, got ${came}`, policy.secrets));
    } catch (error) {
      charge.giveBack();
      throw error;
    }
  };
}

function priceOf(options: WebRetrieverOptions, provider: Provider): number {
  return options.pricePerCall ?? provider.price;
}

function costOf(calls: number, price: number): Amount {
  return { calls, tokens: 0, dollars: calls * price };
}

/** Results without those whose URL came before and those that say nothing. */
function firstOfEach(results: readonly WebResult[]): WebResult[] {
  const seen = new Set<string>();
  return results.filter(({ url, title, snippet }) => {
    const isNew = !seen.has(url) && (title !== "" || snippet !== "");
    seen.add(url);
    return isNew;
  });
}

function passageOf({ url, title, date }: WebResult, page: ReadPage): ScoredPassage["passage"] {
  const extra = {
    ...(date !== undefined && { date }),
    ...(page.problem !== undefined && { page: page.problem }),
  };
  const passage = { id: url, title: page.title || title, text: page.text };
  return Object.keys(extra).length === 0 ? passage : { ...passage, extra };
}

/** All that shapes the results; no key, and nothing of the budget. */
function identityOf(options: WebRetrieverOptions, { url }: SearchSettings): RetrieverIdentity {
  const { provider, language, country, engineId, depth, pages } = options;
  const parameters = {
    provider,
    url,
    ...(language && { language }),
    ...(country && { country }),
    ...(engineId && { engineId }),
    depth,
    pages: pages.type,
    ...(pages.type !== "none" && { maxCharacters: pages.maxCharacters }),
  };
  const indexHash = sha256(canonicalJson(parameters));
  return { method: `web ${provider}`, corpusHash: "open web", indexHash, parameters };
}
