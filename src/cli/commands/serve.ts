/**
 * `forager serve`: a server over what was built, until it is told to stop. One JSON line with `url` on standard
 * output says that it is ready, with and without `--json`, since scripts wait for it. Ends with 130 after an interrupt
 * (SIGINT) and with 0 after SIGTERM, the ordinary way to stop a service.
 */
import { basename, resolve } from "node:path";
import type { Hono } from "hono";
import { InterruptedError, UsageError } from "../../errors.ts";
import type { Reranker } from "../../retrieval/rerank.ts";
import type { ServerLimits } from "../../serving/limits.ts";
import type { Rerank } from "../../serving/rerank.ts";
import { Closers } from "../../shared/closers.ts";
import { type CommandIo, defineCommand, type OptionValues } from "../command.ts";
import { type OpenedPlace, openPlace } from "../open-place.ts";
import { searchFlags } from "../search-flags.ts";

/** What the command needs of the process beyond `CommandIo`: a key, a line while it runs, and which signal came. */
export type ServeHost = Pick<NodeJS.Process, "env" | "once" | "off"> & {
  readonly stdout: { write(text: string): unknown };
};

const options = {
  ...searchFlags,
  port: { type: "integer", value: "N", doc: "Port; 0 takes a free one; default 8000." },
  host: {
    type: "text",
    value: "ADDRESS",
    doc: "Address to listen on; default 127.0.0.1, this machine only.",
  },
  k: {
    type: "integer",
    short: "k",
    value: "N",
    least: 1,
    doc: "Passages where a request does not say; default 3.",
  },
  name: { type: "text", value: "NAME", doc: "Name of the index in /v1/NAME/search; default: the folder's." },
  "api-key-env": { type: "text", value: "NAME", doc: "Ask for the key in this environment variable." },
  "max-body-bytes": {
    type: "integer",
    value: "N",
    least: 1,
    doc: "Most bytes of a request; default 16777216.",
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
  timeout: { type: "integer", value: "SECONDS", least: 1, doc: "Most time for a request; default 60." },
} as const;
type Options = OptionValues<typeof options>;

export const serveCommand = serveCommandOn(process);

/** The command in a process; tests give one of their own. */
export function serveCommandOn(host: ServeHost) {
  return defineCommand({
    name: "serve",
    summary: "Serve an index over HTTP, in the dialects of existing training scripts.",
    details:
      "KIND is retriever. POST /retrieve, /search, /batch_search, /access and, with --rerank, /rerank;\n" +
      "GET /v1/NAME/search, /health, /stats, /metrics, /openapi.yaml; see docs/serving.md. Prints one JSON line\n" +
      "with url when it is ready.",
    args: [
      { name: "KIND", doc: "what is served: retriever" },
      { name: "INDEX", doc: "a folder made by forager index, or s3://BUCKET/PREFIX" },
    ],
    options,
    examples: ["serve retriever my-index --port 8000", "serve retriever my-index --api-key-env FORAGER_KEY"],
    async run({ args, options }, io) {
      const [kind, folder] = args as [string, string];
      if (kind !== "retriever")
        throw new UsageError(
          `serve: expected what to serve, retriever, got "${kind}" (see forager serve --help)`,
        );
      if ((options.port ?? 0) > 65_535)
        throw new UsageError(`serve: --port must be at most 65535, got ${options.port}`);
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
    },
  });
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

interface Serving {
  readonly host: ServeHost;
  readonly io: CommandIo;
  readonly options: Options;
  /** Said when the server is ready. */
  readonly ready: Readonly<Record<string, unknown>>;
  /** When the command began, by `performance.now()`. */
  readonly start: number;
}

/** Listens, says so, waits for a signal, and ends in good order. Throws `InterruptedError` after SIGINT. */
async function serveUntilStopped(
  fetch: (request: Request) => Response | Promise<Response>,
  { host, io, options, ready, start }: Serving,
): Promise<{ readonly json: Readonly<Record<string, unknown>> }> {
  const { startServer } = await import("../../serving/start-server.ts");
  const address = options.host ?? "127.0.0.1";
  const stop = waitForStop(host, io.signal);
  const server = await startServer(fetch, { host: address, port: options.port ?? 8000 });
  if (options["api-key-env"] === undefined && !/^(127\.|localhost$|::1$)/.test(address))
    io.note(
      `serving to every machine that reaches ${address}, without a key; --api-key-env NAME asks for one`,
    );
  const seconds = (performance.now() - start) / 1000;
  const line = { url: server.url, port: server.port, ...ready, seconds };
  host.stdout.write(`${JSON.stringify(line)}\n`);
  const signal = await stop;
  await server.close();
  if (signal === "SIGINT") throw new InterruptedError("stopped; every running request was answered");
  return { json: { url: server.url, stopped: true } };
}

/** Which signal ended the wait; an abort that no signal explains counts as an interrupt. */
function waitForStop(host: ServeHost, signal: AbortSignal): Promise<"SIGINT" | "SIGTERM"> {
  return new Promise((resolve) => {
    const terminate = (): void => resolve("SIGTERM");
    host.once("SIGTERM", terminate);
    const interrupt = (): void => {
      setImmediate(() => {
        host.off("SIGTERM", terminate);
        resolve("SIGINT"); // unless a SIGTERM, which aborts too, was named in the meantime
      });
    };
    if (signal.aborted) interrupt();
    signal.addEventListener("abort", interrupt, { once: true });
  });
}

function keyFrom(env: NodeJS.ProcessEnv, name: string | undefined): string | undefined {
  if (name === undefined) return undefined;
  const key = env[name];
  if (key !== undefined && key.trim() !== "") return key.trim();
  throw new UsageError(`serve: expected the API key in the environment variable ${name}, which is not set`);
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

function failureText(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
