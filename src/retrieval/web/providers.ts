/**
 * The web search services that can be asked, as data and pure functions: request, reply, limits and list price. The
 * formats follow the providers' public documentation, prices their lists of November 2026 for paying as one goes.
 * What a provider writes itself (answers of a language model) is left out; only what stands on pages is a passage.
 */

import type { HttpCall } from "../../shared/http.ts";
import { isFields } from "../remote/document.ts";

export const providerNames = ["serper", "tavily", "brave", "searxng", "serpapi", "google-cse"] as const;
export type ProviderName = (typeof providerNames)[number];

export interface WebResult {
  readonly url: string;
  readonly title: string;
  readonly snippet: string;
  readonly date?: string;
}

export interface SearchSettings {
  readonly url: string;
  /** Empty for a provider without keys. */
  readonly key: string;
  /** Two-letter codes, as Google writes them. */
  readonly language?: string | undefined;
  readonly country?: string | undefined;
  /** Google CSE: the id of the search engine. */
  readonly engineId?: string | undefined;
  readonly depth: "basic" | "advanced";
}

export interface Provider {
  readonly url: string;
  /** The variable that usually holds the key; a provider without one needs no key. */
  readonly keyVariable?: string;
  /** Dollars a call. */
  readonly price: number;
  readonly callsPerSecond: number;
  /** Most results of one call. */
  readonly maxResults: number;
  readonly maxQueryCharacters: number;
  /** How many billed calls one search for `k` results is. */
  billed(k: number, settings: SearchSettings): number;
  request(query: string, k: number, settings: SearchSettings): HttpCall;
  /** The results, or what was expected instead. Results without a URL are left out. */
  parse(reply: unknown): readonly WebResult[] | string;
}

const one = (): number => 1;

export const providers: Readonly<Record<ProviderName, Provider>> = {
  serper: {
    url: "https://google.serper.dev/search",
    keyVariable: "SERPER_API_KEY",
    price: 0.001,
    callsPerSecond: 50,
    maxResults: 100,
    maxQueryCharacters: 2048,
    billed: (k) => (k > 10 ? 2 : 1),
    request: (q, k, { url, key, language, country }) => ({
      method: "POST",
      url,
      headers: { "x-api-key": key },
      body: { q, num: Math.max(10, k), ...(language && { hl: language }), ...(country && { gl: country }) },
    }),
    parse: (reply) => {
      const organic = listOf(reply, "organic", ["searchParameters"]);
      if (typeof organic === "string") return organic;
      return [
        ...answerBox(fieldsOf(reply).answerBox),
        ...results(organic, { url: "link", snippet: "snippet", date: "date" }),
      ];
    },
  },
  tavily: {
    url: "https://api.tavily.com/search",
    keyVariable: "TAVILY_API_KEY",
    price: 0.008,
    callsPerSecond: 10,
    maxResults: 20,
    maxQueryCharacters: 400,
    billed: (_k, { depth }) => (depth === "advanced" ? 2 : 1),
    request: (query, k, { url, key, depth }) => ({
      method: "POST",
      url,
      headers: { authorization: `Bearer ${key}` },
      body: { query, max_results: k, search_depth: depth, include_answer: false },
    }),
    parse: (reply) => {
      const found = listOf(reply, "results", []);
      return typeof found === "string"
        ? found
        : results(found, { url: "url", snippet: "content", date: "published_date" });
    },
  },
  brave: {
    url: "https://api.search.brave.com/res/v1/web/search",
    keyVariable: "BRAVE_API_KEY",
    price: 0.005,
    callsPerSecond: 1,
    maxResults: 20,
    maxQueryCharacters: 400,
    billed: one,
    request: (q, k, { url, key, language, country }) => ({
      method: "GET",
      url: withQuery(url, {
        q: firstWords(q, 50),
        count: k,
        text_decorations: "false",
        search_lang: language,
        country,
      }),
      headers: { "x-subscription-token": key },
    }),
    // A search without results has no "web" at all, only the query.
    parse: (reply) => {
      const found = listOf(fieldsOf(reply).web ?? reply, "results", ["query", "type"]);
      if (typeof found === "string") return found;
      return results(found, { url: "url", snippet: "description", more: "extra_snippets", date: "age" });
    },
  },
  searxng: {
    url: "http://127.0.0.1:8080/search",
    price: 0,
    callsPerSecond: 2,
    maxResults: 20,
    maxQueryCharacters: 2000,
    billed: one,
    request: (q, _k, { url, language }) => ({
      method: "GET",
      url: withQuery(url, { q, format: "json", language }),
    }),
    parse: (reply) => {
      const found = listOf(reply, "results", []);
      return typeof found === "string"
        ? `${found}; SearXNG must have json among search.formats in its settings`
        : results(found, { url: "url", snippet: "content", date: "publishedDate" });
    },
  },
  serpapi: {
    url: "https://serpapi.com/search.json",
    keyVariable: "SERPAPI_API_KEY",
    price: 0.025,
    callsPerSecond: 5,
    maxResults: 100,
    maxQueryCharacters: 2048,
    billed: one,
    request: (q, k, { url, key, language, country }) => ({
      method: "GET",
      url: withQuery(url, {
        engine: "google",
        q,
        num: Math.max(10, k),
        hl: language,
        gl: country,
        api_key: key,
      }),
    }),
    parse: (reply) => {
      // No results are a success with an "error" text and without the list.
      const found = listOf(reply, "organic_results", ["search_metadata"]);
      if (typeof found === "string") return found;
      return [
        ...answerBox(fieldsOf(reply).answer_box),
        ...results(found, { url: "link", snippet: "snippet", date: "date" }),
      ];
    },
  },
  "google-cse": {
    url: "https://www.googleapis.com/customsearch/v1",
    keyVariable: "GOOGLE_API_KEY",
    price: 0.005,
    callsPerSecond: 1.5,
    maxResults: 10,
    maxQueryCharacters: 2048,
    billed: one,
    request: (q, k, { url, key, engineId, language, country }) => ({
      method: "GET",
      url: withQuery(url, { q, num: k, cx: engineId, hl: language, gl: country, key }),
    }),
    parse: (reply) => {
      const found = listOf(reply, "items", ["searchInformation", "queries"]);
      return typeof found === "string" ? found : results(found, { url: "link", snippet: "snippet" });
    },
  },
};

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return isFields(value) ? value : {};
}

/** The list under `key`; empty when it is missing and a key of `signs` shows that the reply is whole. */
function listOf(reply: unknown, key: string, signs: readonly string[]): readonly unknown[] | string {
  const fields = fieldsOf(reply);
  const list = fields[key];
  if (Array.isArray(list)) return list;
  if (list === undefined && signs.some((sign) => sign in fields)) return [];
  return `expected {"${key}": a list}`;
}

interface Keys {
  readonly url: string;
  readonly snippet: string;
  readonly more?: string;
  readonly date?: string;
}

function results(list: readonly unknown[], keys: Keys): WebResult[] {
  return list.flatMap((entry) => {
    const fields = fieldsOf(entry);
    const url = textOf(fields[keys.url]);
    if (!URL.canParse(url)) return [];
    const more = keys.more === undefined ? [] : fields[keys.more];
    const snippets = [fields[keys.snippet], ...(Array.isArray(more) ? (more as unknown[]) : [])];
    const date = keys.date === undefined ? "" : textOf(fields[keys.date]);
    const snippet = snippets
      .map(textOf)
      .filter((text) => text !== "")
      .join("\n");
    return [{ url, title: textOf(fields.title), snippet, ...(date !== "" && { date }) }];
  });
}

/** What a search engine shows above its results, when it is taken from a page. */
function answerBox(box: unknown): WebResult[] {
  const { title, answer, snippet, link } = fieldsOf(box);
  const url = textOf(link);
  const text = [answer, snippet]
    .map(textOf)
    .filter((part) => part !== "")
    .join("\n");
  return text === "" || !URL.canParse(url) ? [] : [{ url, title: textOf(title), snippet: text }];
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value.trim() : "";
}

function withQuery(url: string, parameters: Readonly<Record<string, string | number | undefined>>): string {
  const whole = new URL(url);
  for (const [name, value] of Object.entries(parameters))
    if (value !== undefined) whole.searchParams.set(name, String(value));
  return whole.href;
}

/** Brave takes at most 50 words. */
function firstWords(query: string, count: number): string {
  return query.trim().split(/\s+/).slice(0, count).join(" ");
}
