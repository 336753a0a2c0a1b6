/** `forager serve retriever`: an index over HTTP, in the dialects of existing training scripts. */
import { basename, resolve } from "node:path";
import type { Hono } from "hono";
import { UsageError } from "../../errors.ts";
import type { Reranker } from "../../retrieval/rerank.ts";
import type { ServerLimits } from "../../serving/limits.ts";
import type { Rerank } from "../../serving/rerank.ts";
import { Closers } from "../../shared/closers.ts";
import type { CommandIo, OptionValues } from "../command.ts";
import { type OpenedPlace, openPlace } from "../open-place.ts";
import { searchFlags } from "../search-flags.ts";
import {
  failureText,
  keyFrom,
  type ServeHost,
  type ServerFlags,
  serveUntilStopped,
} from "./serve-until-stopped.ts";

export const retrieverFlags = {
  ...searchFlags,
  k: {
    type: "integer",
    short: "k",
    value: "N",
    least: 1,
    doc: "Passages where a request does not say; default 3.",
  },
  "max-queries": { type: "integer", value: "N", least: 1, doc: "Most queries in a call; default 8192." },
  "max-query-characters": { type: "integer", value: "N", least: 1, doc: "Longest query; default 16384." },
  "max-k": { type: "integer", value: "N", least: 1, doc: "Most passages for a query; default 1000." },
  concurrency: { type: "integer", value: "N", least: 1, doc: "Calls worked on at one time; default 8." },
  queue: { type: "integer", value: "N", doc: "Calls that may wait before 429; default 2048." },
  merge: {
    type: "integer",
    value: "N",
    least: 2,
    doc: "Join waiting calls into one of up to N queries; pays with an encoder. Default: never.",
  },
} as const;
type Options = OptionValues<typeof retrieverFlags> & ServerFlags;

/** Serves the index in `folder` until it is told to stop. */
export async function serveRetriever(
  folder: string | undefined,
  options: Options,
  { host, io }: { readonly host: ServeHost; readonly io: CommandIo },
): Promise<{ readonly json: Readonly<Record<string, unknown>> }> {
  if (folder === undefined)
    throw new UsageError("serve retriever: expected an INDEX (see forager serve --help)");
  const apiKey = keyFrom(host.env, options["api-key-env"]);
  const start = performance.now();
  const opened = new Closers();
  try {
    const place = await openPlace(folder, options, { io, opened });
    const name = options.name ?? basename(resolve(folder));
    const app = await appOf(place, { name, options, apiKey }, io);
    const { method, corpusHash } = place.retriever.identity;
    const ready = { name, method, passages: place.passages, corpusHash };
    return await serveUntilStopped(app.fetch, { host, io, options, ready, start });
  } finally {
    await opened.close();
  }
}

async function appOf(
  { retriever, passages, store, reranker }: OpenedPlace,
  {
    name,
    options,
    apiKey,
  }: { readonly name: string; readonly options: Options; readonly apiKey?: string | undefined },
  io: CommandIo,
): Promise<Hono> {
  const { createRetrieverApp } = await import("../../serving/retriever-app.ts");
  const { passageLookup } = await import("../../serving/passage-lookup.ts");
  return createRetrieverApp(retriever, {
    now: () => performance.now(),
    limits: limitsOf(options),
    name,
    passages,
    stopping: io.signal,
    onFailure: (error) => io.note(failureText(error)),
    ...(store !== undefined && { lookup: passageLookup(store) }),
    ...(options.k !== undefined && { defaultK: options.k }),
    ...(options.merge !== undefined && { mergeQueries: options.merge }),
    ...(apiKey !== undefined && { apiKey }),
    ...(reranker !== undefined && { rerank: rerankBy(reranker) }),
  });
}

/** A cross-encoder for clients that send the documents themselves. */
function rerankBy(reranker: Reranker): Rerank {
  return async (query, documents, signal) => {
    const pairs = documents.map((text) => ({ query, passage: { title: "", text } }));
    return Array.from(await reranker.score(pairs, signal));
  };
}

function limitsOf(options: Options): Partial<ServerLimits> {
  const given = {
    bodyBytes: options["max-body-bytes"],
    queries: options["max-queries"],
    queryCharacters: options["max-query-characters"],
    k: options["max-k"],
    concurrency: options.concurrency,
    queue: options.queue,
    requestMs: options.timeout === undefined ? undefined : options.timeout * 1000,
  };
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
}
