/**
 * The text behind a search result: fetched directly or through Jina Reader. A page that cannot be had is no failure of
 * the search: the passage keeps its snippet, and `extra.page` says why.
 */
import { RetrieverError } from "../../errors.ts";
import { chargeOf, isBudgetSpent, type Meter } from "../../shared/budget.ts";
import { createLimiter, createPace } from "../../shared/concurrency.ts";
import { fetchJson, type HttpPolicy } from "../../shared/http.ts";
import { keyOf, type NetworkWorld } from "../../shared/network-world.ts";
import { isFields } from "../remote/document.ts";
import { fetchPage, type PageNetwork, pageNetwork } from "./fetch-page.ts";
import { bestWindow } from "./html-text.ts";
import type { WebResult } from "./providers.ts";
import { checkedUrl, isPublicAddress } from "./public-address.ts";
import type { PagesOptions, WebRetrieverOptions } from "./web-options.ts";

export interface WebWorld extends NetworkWorld {
  /** How pages are reached; absent: over the network. */
  readonly pages?: PageNetwork;
}

export interface ReadPage {
  readonly title: string;
  readonly text: string;
  /** Why the text is the snippet. */
  readonly problem?: string;
}

/** Gives the text for a result of `query`. */
export type PageReader = (result: WebResult, query: string, signal: AbortSignal) => Promise<ReadPage>;

/** The reader that `options.pages` asks for, and the secrets it uses. Throws `ConfigError` for a missing key. */
export function pageReader(
  options: WebRetrieverOptions,
  world: WebWorld,
  meter: Meter,
): { readonly read: PageReader; readonly secrets: readonly string[] } {
  const { pages } = options;
  if (pages.type === "none")
    return { read: async ({ title, snippet }) => ({ title, text: snippet }), secrets: [] };
  if (pages.type === "direct")
    return { read: withSnippet(directReader(pages, world), pages.maxCharacters), secrets: [] };
  const key = keyOf(pages.keyVariable, world);
  const policy: HttpPolicy = {
    ...options,
    error: RetrieverError,
    maxReplyBytes: 16 << 20,
    secrets: [key],
  };
  const read = jinaReader({ pages, policy, key }, world, meter);
  return { read: withSnippet(read, pages.maxCharacters), secrets: [key] };
}

type Fetch = (url: string, signal: AbortSignal) => Promise<{ readonly title: string; readonly text: string }>;

function withSnippet(fetchText: Fetch, maxCharacters: number): PageReader {
  return async ({ url, title, snippet }, query, signal) => {
    try {
      const page = await fetchText(url, signal);
      if (page.text.trim() === "") return { title, text: snippet, problem: "the page has no text" };
      const text = bestWindow(page.text, `${query} ${snippet}`, maxCharacters);
      return { title: title || page.title, text };
    } catch (error) {
      if (!(error instanceof RetrieverError) || isBudgetSpent(error)) throw error;
      return { title, text: snippet, problem: error.message };
    }
  };
}

function directReader(limits: Extract<PagesOptions, { type: "direct" }>, world: WebWorld): Fetch {
  const limiter = createLimiter(limits.concurrency);
  const network = world.pages ?? pageNetwork;
  return (url, signal) => limiter.run(() => fetchPage(url, limits, { network, signal }), signal);
}

interface Jina {
  readonly pages: Extract<PagesOptions, { type: "jina" }>;
  readonly policy: HttpPolicy;
  readonly key: string;
}

function jinaReader({ pages, policy, key }: Jina, world: WebWorld, meter: Meter): Fetch {
  const pace = createPace(pages.callsPerSecond, world);
  return async (text, signal) => {
    const url = checkedUrl(text);
    const host = url.hostname.replace(/^\[|\]$/g, "");
    // Jina resolves names itself; an address or a bare name of this network is not told to it.
    const isAddress = /^[\d.]+$|:/.test(host);
    if (isAddress ? !(await isPublicAddress(host)) : !host.includes("."))
      throw new RetrieverError(`refused to fetch ${url.host}: it is not a public address`);
    const cost = { calls: 1, tokens: 0, dollars: pages.pricePerPage };
    meter.reserve(cost);
    const charge = chargeOf(meter, cost);
    try {
      await pace(signal);
      const reply = await fetchJson(
        {
          method: "GET",
          url: `${pages.url.replace(/\/+$/, "")}/${url.href}`,
          headers: { authorization: `Bearer ${key}`, "x-return-format": "text" },
        },
        { ...policy, ...charge.hooks },
        { world, signal },
      );
      const data = isFields(reply) ? reply.data : undefined;
      const { title = "", text: plain, content } = isFields(data) ? data : {};
      const body = typeof plain === "string" ? plain : content;
      if (typeof body !== "string" || typeof title !== "string")
        throw new RetrieverError(`${pages.url}: expected {"data": {"title", "content"}}, got another reply`);
      return { title, text: body };
    } catch (error) {
      charge.giveBack();
      throw error;
    }
  };
}
