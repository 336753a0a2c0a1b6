/**
 * One HTTP call as it should be made from a long run: time limit, size limit, bounded retries with jittered back-off
 * for causes that pass (no connection, 408, 425, 429, 5xx; `Retry-After` is obeyed), and messages that name the place
 * without ever showing a secret. Redirects are not followed: a header with a key must not travel to another host.
 */
import { ForagerError } from "../errors.ts";
import { onAbort } from "./concurrency.ts";
import { connectTimeout, type FetchReply, type NetworkWorld, UnusableReplyError } from "./network-world.ts";

export interface HttpCall {
  readonly method: "GET" | "POST" | "DELETE";
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as JSON. */
  readonly body?: unknown;
}

/** The error of the room that calls, such as `RetrieverError`. */
export type HttpError = new (message: string, options?: { cause?: unknown }) => ForagerError;

export interface HttpPolicy {
  /** What is thrown when there is no reply to use. */
  readonly error: HttpError;
  /** For one attempt, from its start to the end of the reply. */
  readonly timeoutMs: number;
  /** Attempts after the first. */
  readonly retries: number;
  /** Wait before the first retry; doubled each time, up to a minute, and multiplied by 0.5-1.5 at random. */
  readonly backoffMs: number;
  readonly maxReplyBytes: number;
  /** Replaced by `***` in every message. */
  readonly secrets: readonly string[];
  /** Called when an attempt is sent. */
  readonly onSend?: () => void;
  /** Called when an attempt ended without a reply, so that nobody knows whether the server counted it. */
  readonly onLost?: () => void;
  /** Called when an attempt was surely not served: no connection, or a reply whose status is no success. */
  readonly onUnserved?: () => void;
}

export interface HttpReply {
  readonly status: number;
  readonly text: string;
  /** What `Retry-After` asks to wait. */
  readonly waitMs?: number | undefined;
}

/** An attempt without a reply. */
export interface Failure {
  readonly failure: string;
  readonly isLost?: boolean;
  /** What the server asks to wait. */
  readonly waitMs?: number | undefined;
  readonly cause?: unknown;
}

const MAX_WAIT_MS = 60_000;
const transientStatus = new Set([408, 425, 429]);

/** The reply, whatever its status unless that is transient; throws `policy.error`, or the signal's reason. */
export async function fetchReply(
  call: HttpCall,
  policy: HttpPolicy,
  { world, signal }: { readonly world: NetworkWorld; readonly signal?: AbortSignal | undefined },
): Promise<HttpReply> {
  const where = `${call.method} ${shownUrl(call.url)}`;
  for (let attempt = 0; ; attempt++) {
    signal?.throwIfAborted();
    const outcome = await attemptOnce(call, policy, { world, signal });
    if (!("failure" in outcome)) {
      if (outcome.status < 200 || outcome.status > 299) policy.onUnserved?.();
      return outcome;
    }
    if (outcome.isLost === true) policy.onLost?.();
    else policy.onUnserved?.();
    const wait = waitBefore(attempt, outcome, { policy, world });
    if (attempt >= policy.retries || wait > MAX_WAIT_MS) {
      const attempts = attempt === 0 ? "" : ` (attempt ${attempt + 1} of ${policy.retries + 1})`;
      const asked = wait > MAX_WAIT_MS ? `; the server asks to wait ${Math.ceil(wait / 1000)} s` : "";
      throw new policy.error(redact(`${where}: ${outcome.failure}${attempts}${asked}`, policy.secrets), {
        cause: plainCause(outcome.cause, policy.secrets),
      });
    }
    await world.sleep(wait, signal);
  }
}

/** The JSON of a reply with a status of 200-299; throws `policy.error` with an excerpt for anything else. */
export async function fetchJson(
  call: HttpCall,
  policy: HttpPolicy,
  context: { readonly world: NetworkWorld; readonly signal?: AbortSignal | undefined },
): Promise<unknown> {
  const reply = await fetchReply(call, policy, context);
  const where = `${call.method} ${shownUrl(call.url)}`;
  const wrong = (message: string): ForagerError =>
    new policy.error(redact(`${where}: ${message}`, policy.secrets));
  if (reply.status < 200 || reply.status > 299)
    throw wrong(`expected status 200, got ${describeStatus(reply)}`);
  try {
    return JSON.parse(reply.text);
  } catch {
    throw wrong(`expected JSON, got ${excerpt(reply.text)}`);
  }
}

async function attemptOnce(
  call: HttpCall,
  policy: HttpPolicy,
  context: { readonly world: NetworkWorld; readonly signal?: AbortSignal | undefined },
): Promise<HttpReply | Failure> {
  const reply = await exchange(call, policy, context);
  if ("failure" in reply) return reply;
  if (!transientStatus.has(reply.status) && reply.status < 500) return reply;
  return { failure: `got ${describeStatus(reply)}`, waitMs: reply.waitMs };
}

/**
 * One attempt and nothing more: the reply, whatever its status, or why there was none. For callers who must decide by
 * themselves what may be sent again. Throws `policy.error` for what can never succeed, and the signal's reason.
 */
export async function exchange(
  call: HttpCall,
  policy: HttpPolicy,
  { world, signal }: { readonly world: NetworkWorld; readonly signal?: AbortSignal | undefined },
): Promise<HttpReply | Failure> {
  const controller = new AbortController();
  const timer = setTimeout(() => controller.abort(new Error("time limit")), policy.timeoutMs);
  const forget = onAbort(signal, () => controller.abort(signal?.reason));
  let isRead = false;
  try {
    policy.onSend?.();
    const response = await world.fetch(call.url, {
      method: call.method,
      headers: {
        accept: "application/json",
        ...(call.body !== undefined && { "content-type": "application/json" }),
        ...call.headers,
      },
      ...(call.body !== undefined && { body: JSON.stringify(call.body) }),
      redirect: "manual",
      signal: controller.signal,
    });
    const text = await readText(call.url, response, policy);
    isRead = true;
    const waitMs = retryAfterMs(response.headers.get("retry-after"), world.now());
    return { status: response.status, text, ...(waitMs !== undefined && { waitMs }) };
  } catch (cause) {
    signal?.throwIfAborted();
    if (cause instanceof ForagerError) throw cause;
    if (cause instanceof UnusableReplyError) {
      policy.onLost?.();
      throw new policy.error(`${call.method} ${shownUrl(call.url)}: ${cause.message}`, { cause });
    }
    if (controller.signal.aborted)
      return { failure: `no answer within ${policy.timeoutMs / 1000} s`, isLost: true };
    return connectionFailure(cause, call, policy);
  } finally {
    clearTimeout(timer);
    forget();
    // Gives up what is left of a reply; an abort after its end would only cost time.
    if (!isRead) controller.abort();
  }
}

const neverConnected = new Set(["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", connectTimeout]);

/** A connection that failed; one that can never succeed is thrown. */
function connectionFailure(cause: unknown, call: HttpCall, policy: HttpPolicy): Failure {
  const inner = cause instanceof Error && cause.cause instanceof Error ? cause.cause : cause;
  const code = (inner as { readonly code?: unknown } | null)?.code;
  const text = typeof code === "string" ? code : inner instanceof Error ? inner.message : String(inner);
  if (/CERT|TLS|SSL|SELF_SIGNED|VERIFY/.test(text)) {
    policy.onUnserved?.();
    throw new policy.error(
      redact(
        `${call.method} ${shownUrl(call.url)}: no secure connection (${text}); check the certificate and https or http`,
        policy.secrets,
      ),
    );
  }
  const advice =
    text === "ECONNREFUSED" ? "nothing listens there; start the server or correct the URL" : text;
  const isLost = !neverConnected.has(text);
  return { failure: isLost ? `the connection broke (${text})` : `no connection: ${advice}`, isLost, cause };
}

async function readText(
  url: string,
  response: FetchReply,
  { maxReplyBytes, error }: HttpPolicy,
): Promise<string> {
  const reader = response.body?.getReader();
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for (let part = await reader?.read(); part?.value !== undefined; part = await reader?.read()) {
    bytes += part.value.byteLength;
    if (bytes > maxReplyBytes)
      throw new error(`${shownUrl(url)}: expected a reply of at most ${maxReplyBytes} bytes, got more`);
    chunks.push(part.value);
  }
  return decoder.decode(chunks.length === 1 ? chunks[0] : Buffer.concat(chunks));
}

const decoder = new TextDecoder();

function waitBefore(
  attempt: number,
  { waitMs = 0 }: Failure,
  { policy, world }: { readonly policy: HttpPolicy; readonly world: NetworkWorld },
): number {
  const backoff = Math.min(MAX_WAIT_MS / 1.5, policy.backoffMs * 2 ** attempt) * (0.5 + world.random());
  return Math.max(waitMs, backoff);
}

/** `Retry-After` is a number of seconds or a date (RFC 9110, 10.2.3). */
export function retryAfterMs(header: string | null, now: number): number | undefined {
  if (header === null) return undefined;
  if (/^\s*\d+\s*$/.test(header)) return Number(header) * 1000;
  const date = Date.parse(header);
  return Number.isNaN(date) ? undefined : Math.max(0, date - now);
}

/** A status with an excerpt of its text, for messages. */
export function describeStatus({ status, text }: HttpReply): string {
  const advice =
    status === 401 || status === 403
      ? " (the key is missing, wrong or without rights)"
      : status >= 300 && status < 400
        ? " (a redirect, which is not followed; give the final URL)"
        : "";
  return `${status}${advice}${text.trim() === "" ? "" : `: ${excerpt(text)}`}`;
}

/** The start of a text for a message, on one line. */
export function excerpt(text: string, length = 200): string {
  const line = text
    .slice(0, length * 4)
    .replace(/\s+/g, " ")
    .trim();
  return line === "" ? "nothing" : JSON.stringify(line.length <= length ? line : `${line.slice(0, length)}…`);
}

/** A URL without credentials, query and fragment, which may hold secrets. */
export function shownUrl(url: string): string {
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  return parsed === undefined ? "the URL" : `${parsed.origin}${parsed.pathname}`;
}

/** `text` with each secret, also in its URL-encoded form, replaced by `***`. */
export function redact(text: string, secrets: readonly string[]): string {
  let result = text;
  for (const secret of secrets) {
    if (secret === "") continue;
    for (const form of new Set([secret, encodeURIComponent(secret), JSON.stringify(secret).slice(1, -1)]))
      result = result.replaceAll(form, "***");
  }
  return result;
}

/** A cause whose message and stack cannot show a secret. */
function plainCause(cause: unknown, secrets: readonly string[]): Error | undefined {
  return cause instanceof Error ? new Error(redact(cause.message, secrets)) : undefined;
}
