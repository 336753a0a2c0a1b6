/**
 * A retriever as the routes use it: within the limits on concurrency, bodies and time, and with its failures told
 * apart from the client's mistakes (502).
 */
import { ForagerError } from "../errors.ts";
import type { Retriever, ScoredPassage } from "../retrieval/retriever.ts";
import { AnswerWriter } from "./answer-writer.ts";
import { DocumentCache } from "./document-cache.ts";
import type { Body } from "./fields.ts";
import { Gate } from "./gate.ts";
import { HttpError } from "./http-error.ts";
import { limitsWith, type ServerLimits } from "./limits.ts";
import { mergeCalls } from "./merge-calls.ts";
import type { PassageLookup } from "./passage-lookup.ts";
import { ByteBudget, orAborted, readBody } from "./read-body.ts";
import type { Rerank } from "./rerank.ts";
import { createMetrics, type ServerMetrics } from "./server-metrics.ts";

export interface RetrieverAppOptions {
  /** Milliseconds from any fixed start. */
  readonly now: () => number;
  readonly limits?: Partial<ServerLimits>;
  /** Join calls that wait at the same time into one of up to so many queries (`merge-calls.ts`); absent: never. */
  readonly mergeQueries?: number;
  /** Passages for a query where the client does not say how many; default 3. */
  readonly defaultK?: number;
  /** The name of the index in `/v1/NAME/search`; default `index`. */
  readonly name?: string;
  /** How many passages there are, for `/health`. */
  readonly passages?: number;
  /** Finds passages by id or url; without it `/access` and `/v1/NAME/doc/ID` answer 501. */
  readonly lookup?: PassageLookup;
  /** Without it `/rerank` answers 501. */
  readonly rerank?: Rerank;
  /** Asked for by every route but `/health` and `/healthz`. */
  readonly apiKey?: string;
  /** Aborted when the server is about to end. */
  readonly stopping?: AbortSignal;
  /** Told of failures that are not the client's; default: nobody. */
  readonly onFailure?: (error: unknown) => void;
}

export interface Service {
  readonly retriever: Retriever;
  readonly options: RetrieverAppOptions;
  readonly limits: ServerLimits;
  readonly defaultK: number;
  readonly name: string;
  readonly metrics: ServerMetrics;
  /** Seconds since the app was made. */
  uptime(): number;
  /** Passages for each query. Throws `HttpError` (429, 502), and the signal's reason when it aborts. */
  retrieve(queries: readonly string[], k: number, signal: AbortSignal): Promise<readonly ScoredPassage[][]>;
  /** For an answer with about `passages` documents. */
  writer(passages?: number): AnswerWriter;
  /** Runs work that costs as much as a search when its turn comes. Throws like `retrieve`. */
  inTurn<T>(what: string, work: () => Promise<T>, signal: AbortSignal): Promise<T>;
  /** Reads a body and holds its bytes while `use` runs. Throws `HttpError` (400, 408, 413, 415, 422, 429). */
  withBody<T>(request: Request, signal: AbortSignal, use: (body: Body) => Promise<T>): Promise<T>;
}

export function createService(retriever: Retriever, options: RetrieverAppOptions): Service {
  const limits = limitsWith(options.limits);
  const { mergeQueries } = options;
  const merged = mergeQueries === undefined ? retriever : mergeCalls(retriever, mergeQueries);
  const gate = new Gate(limits.concurrency, limits.queue, options.now);
  const budget = new ByteBudget(limits.pendingBytes);
  const documents = new DocumentCache(limits.cacheBytes);
  const metrics = createMetrics(() => ({ running: gate.running, waiting: gate.waiting }));
  const start = options.now();
  const onFailure = options.onFailure ?? (() => undefined);

  const inTurn: Service["inTurn"] = (what, work, signal) => {
    if (gate.isFull) throw overloaded(limits);
    const guarded = async () => {
      try {
        return await work();
      } catch (error) {
        if (signal.aborted || error instanceof HttpError) throw error;
        onFailure(error);
        throw failed(what, error);
      }
    };
    return orAborted(gate.run(guarded, signal), signal);
  };

  return {
    retriever,
    options,
    limits,
    defaultK: options.defaultK ?? 3,
    name: options.name ?? "index",
    metrics,
    uptime: () => (options.now() - start) / 1000,
    writer: (passages) => new AnswerWriter(documents, limits.answerBytes, passages),
    inTurn,
    retrieve: async (queries, k, signal) => {
      const results = await inTurn("retriever", () => merged.retrieve(queries, k, signal), signal);
      if (results.length !== queries.length)
        throw failed(
          "retriever",
          new ForagerError("retriever", `it gave ${results.length} lists of passages`),
        );
      metrics.found(
        queries.length,
        results.reduce((sum, found) => sum + found.length, 0),
      );
      return results;
    },
    withBody: async (request, signal, use) => {
      if (gate.isFull) throw overloaded(limits);
      const held = await readBody(request, { most: limits.bodyBytes, budget, signal }).catch(
        (error: unknown) => {
          throw error === signal.reason && error instanceof HttpError && error.status === 503
            ? slowBody(limits)
            : error;
        },
      );
      try {
        return await use(held.body);
      } finally {
        budget.giveBack(held.bytes);
      }
    },
  };
}

function overloaded({ concurrency, queue }: ServerLimits): HttpError {
  return new HttpError(
    429,
    {
      expected: `at most ${concurrency} calls at work and ${queue} waiting`,
      got: "one more",
      advice: "send it again a little later, or send more queries in fewer calls",
    },
    { "retry-after": "1" },
  );
}

function slowBody({ requestMs }: ServerLimits): HttpError {
  return new HttpError(408, {
    expected: `the whole request within ${requestMs / 1000} s`,
    got: "a part of it",
    advice: "send it faster or in smaller calls",
  });
}

function failed(what: string, error: unknown): HttpError {
  return new HttpError(502, {
    expected: `an answer of the ${what}`,
    got: error instanceof ForagerError ? error.message : "a failure, which the server has logged",
    advice: "send it again; if it goes on, tell who runs this server",
  });
}
