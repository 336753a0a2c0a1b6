/**
 * What every request goes through, whatever it asks: the key, the deadline, the client that goes away, errors in words,
 * and the count of all that. A route is a function from request to JSON; it need not think of any of these.
 */
import { ForagerError } from "../errors.ts";
import { clientGone, type ErrorStatus, errorJson, HttpError } from "./http-error.ts";
import type { ServerMetrics } from "./server-metrics.ts";

export interface Answer {
  /** For the metrics; absent: the path of the route. */
  readonly route?: string;
  readonly body: string | Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array> | null;
  /** Default `application/json`. */
  readonly contentType?: string;
  /** Default 200. */
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
}

export type Work = (request: Request, signal: AbortSignal) => Promise<Answer>;

export interface PipelineOptions {
  readonly requestMs: number;
  readonly metrics: Pick<ServerMetrics, "record">;
  /** Milliseconds from any fixed start. */
  readonly now: () => number;
  /** Throws `HttpError` for headers without the key; absent where there is no key. */
  readonly checkKey?: ((headers: Headers) => void) | undefined;
  /** Aborted when the server is about to end: requests that come later are turned away. */
  readonly stopping?: AbortSignal | undefined;
  /** Told of failures that are not the client's, for the log. */
  readonly onFailure: (error: unknown) => void;
  /** How a client is told of an error; default `errorResponse`. */
  readonly writeError?: (error: HttpError) => Response;
}

export type Pipeline = (
  request: Request,
  route: { readonly path: string; readonly isOpen?: boolean },
  work: Work,
) => Promise<Response>;

export function createPipeline(options: PipelineOptions): Pipeline {
  const { metrics, now, checkKey, stopping, requestMs, writeError = errorResponse } = options;
  return async (request, { path, isOpen = false }, work) => {
    const start = now();
    const deadline = startDeadline(request.signal, requestMs);
    let route = path;
    let response: Response;
    try {
      if (stopping?.aborted) throw isStopping();
      if (!isOpen) checkKey?.(request.headers);
      const answer = await work(request, deadline.signal);
      route = answer.route ?? path;
      response = jsonResponse(answer.status ?? 200, answer.body, {
        "content-type": answer.contentType ?? "application/json",
        ...answer.headers,
      });
    } catch (error) {
      const known = knownError(error, deadline.signal);
      // What this server refuses on purpose, such as reranking without a reranker, is no failure.
      if (known.status >= 500 && known !== error && known !== deadline.signal.reason)
        options.onFailure(error);
      response = writeError(known);
    } finally {
      deadline.end();
    }
    metrics.record({ route, status: response.status, seconds: (now() - start) / 1000 });
    return response;
  };
}

export function errorResponse(error: HttpError): Response {
  return jsonResponse(error.status, errorJson(error), {
    "content-type": "application/json",
    ...error.headers,
  });
}

/** For a failure that not even the pipeline could put into words: a bug of ours. */
export function ourFailure(): Response {
  return errorResponse(
    new HttpError(500, { expected: "an answer", got: "a failure of the server", advice: "please report it" }),
  );
}

function jsonResponse(status: number, body: Answer["body"], headers: Record<string, string>): Response {
  return new Response(body, { status, headers });
}

interface Deadline {
  /** Aborts when the time is over (reason 503) or the client is gone (reason 499). */
  readonly signal: AbortSignal;
  end(): void;
}

function startDeadline(client: AbortSignal, milliseconds: number): Deadline {
  const controller = new AbortController();
  const leave = (): void => controller.abort(clientGone());
  const timer = setTimeout(() => controller.abort(tooSlow(milliseconds)), milliseconds);
  if (client.aborted) leave();
  client.addEventListener("abort", leave, { once: true });
  return {
    signal: controller.signal,
    end: () => {
      clearTimeout(timer);
      client.removeEventListener("abort", leave);
    },
  };
}

/** Any error as one that may be shown. A client that goes away breaks the reading of its body in many ways. */
function knownError(error: unknown, signal: AbortSignal): HttpError {
  if (signal.aborted && signal.reason instanceof HttpError) {
    const isOurs = error instanceof HttpError && error !== signal.reason;
    return isOurs ? error : signal.reason;
  }
  if (error instanceof HttpError) return error;
  const got = error instanceof ForagerError ? error.message : "a failure, which the server has logged";
  const status: ErrorStatus = error instanceof ForagerError ? 503 : 500;
  return new HttpError(status, {
    expected: "an answer",
    got,
    advice: "tell who runs this server",
  });
}

function tooSlow(milliseconds: number): HttpError {
  return new HttpError(
    503,
    {
      expected: `an answer within ${milliseconds / 1000} s`,
      got: "none yet",
      advice: "send fewer queries in a call or fewer calls at one time, or raise the server's time limit",
    },
    { "retry-after": "1" },
  );
}

function isStopping(): HttpError {
  return new HttpError(
    503,
    {
      expected: "a server that goes on",
      got: "one that is stopping",
      advice: "send it again a little later",
    },
    { "retry-after": "5" },
  );
}
