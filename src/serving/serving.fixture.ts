/** For tests: three passages, a retriever that finds those that share a word with the query, and an app over both. */
import type { Hono } from "hono";
import type { Passage } from "../corpus/passage.ts";
import type { PassageStore } from "../retrieval/passage-store.ts";
import type { Retriever } from "../retrieval/retriever.ts";
import { passageLookup } from "./passage-lookup.ts";
import { createRetrieverApp, type RetrieverAppOptions } from "./retriever-app.ts";

export const passages: readonly Passage[] = [
  { id: "fr", title: "France", text: "The capital of France is Paris." },
  {
    id: "it",
    title: "Italy",
    text: "The capital of Italy is Rome.",
    extra: { url: "https://example.org/italy", year: 2024 },
  },
  { id: "日本/1", title: 'Say "hi"', text: 'Tōkyō ist "die" Hauptstadt\n</information> 🗼 \u2028 \ud83d' },
];

export const store: PassageStore = {
  count: passages.length,
  get: (position) => passages[position] as Passage,
};

export interface SeenCall {
  readonly queries: readonly string[];
  readonly k: number;
}

/** Ranks by shared words; records what it was asked. */
export function wordRetriever(): Retriever & { readonly calls: SeenCall[] } {
  const calls: SeenCall[] = [];
  const wordsOf = (text: string): Set<string> => new Set(text.toLowerCase().match(/[\p{L}\p{N}]+/gu));
  const score = (query: string, { title, text }: Passage): number =>
    [...wordsOf(query)].filter((word) => wordsOf(`${title} ${text}`).has(word)).length;
  return {
    calls,
    identity: {
      method: "words",
      corpusHash: "c".repeat(64),
      indexHash: "i".repeat(64),
      parameters: { k1: 1.2, b: 0.75 },
    },
    retrieve: async (queries, k, signal) => {
      signal?.throwIfAborted();
      calls.push({ queries, k });
      return queries.map((query) =>
        passages
          .map((passage) => ({ passage, score: score(query, passage) }))
          .filter((found) => found.score > 0)
          .sort((a, b) => b.score - a.score)
          .slice(0, k),
      );
    },
  };
}

/** A retriever whose calls end when the test says so. */
export function heldRetriever(): Retriever & {
  /** Signals of the calls that were made. */
  readonly signals: AbortSignal[];
  release(): void;
} {
  const waiting: (() => void)[] = [];
  const signals: AbortSignal[] = [];
  return {
    ...wordRetriever(),
    signals,
    release: () => {
      for (const go of waiting.splice(0)) go();
    },
    retrieve: (queries, _k, signal) => {
      if (signal !== undefined) signals.push(signal);
      return new Promise((resolve, reject) => {
        waiting.push(() => resolve(queries.map(() => [])));
        signal?.addEventListener("abort", () => reject(signal.reason));
      });
    },
  };
}

export function appOf(retriever: Retriever, options: Partial<RetrieverAppOptions> = {}): Hono {
  return createRetrieverApp(retriever, {
    now: () => performance.now(),
    lookup: passageLookup(store),
    ...options,
  });
}

export interface TestAnswer {
  readonly status: number;
  readonly json: unknown;
  readonly headers: Headers;
}

/** Sends a JSON body (or a text as it is) and reads the JSON of the answer. */
export async function post(
  app: Hono,
  path: string,
  body: unknown,
  headers: Record<string, string> = {},
): Promise<TestAnswer> {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  const response = await app.request(path, {
    method: "POST",
    body: text,
    headers: { "content-type": "application/json", ...headers },
  });
  return { status: response.status, json: await response.json(), headers: response.headers };
}

export async function get(
  app: Hono,
  path: string,
  headers: Record<string, string> = {},
): Promise<TestAnswer> {
  const response = await app.request(path, { headers });
  return { status: response.status, json: await response.json(), headers: response.headers };
}
