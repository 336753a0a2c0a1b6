/**
 * Asking a hub for a file: redirects are followed by hand, so that the token goes to the hub alone and what it
 * declares about the file (commit, size, hash) is read from its own answers, not from a storage host's. A status
 * that is no file becomes a `HubError` with advice; the token is never shown.
 */
import { FileError } from "../errors.ts";

export type HubFailure =
  | "unauthorized"
  | "forbidden"
  | "not-found"
  | "rate-limited"
  | "server"
  | "network"
  | "broken-off"
  | "wrong-length"
  | "wrong-hash"
  | "refused";

/** A hub that did not give a file; `reason` says why. */
export class HubError extends FileError {
  readonly reason: HubFailure;
  /** Seconds that the hub asked to wait. */
  readonly retryAfter: number | undefined;
  constructor(reason: HubFailure, message: string, options: { cause?: unknown; retryAfter?: number } = {}) {
    super(message, options);
    this.reason = reason;
    this.retryAfter = options.retryAfter;
  }
}

/** What the hub says a file is. */
export interface Declared {
  readonly commit: string | undefined;
  readonly size: number | undefined;
  /** Changes with the content of the file. */
  readonly tag: string | undefined;
}

export interface Answer {
  readonly response: Response;
  readonly declared: Declared;
}

export interface Request {
  readonly url: URL;
  readonly token: string | undefined;
  readonly fetch: typeof fetch;
  readonly signal: AbortSignal;
  /** The byte to start from, once the tag of the file is known. */
  readonly startAt: (tag: string) => Promise<number>;
}

const MOST_REDIRECTS = 8;

/** A URL without credentials, query and fragment, which may hold secrets. */
export function shown({ protocol, host, pathname }: URL): string {
  return `${protocol}//${host}${pathname}`;
}

/** Follows redirects to the file and returns the answer that holds it (200 or 206), or 416. Throws `HubError`. */
export async function askForFile(request: Request): Promise<Answer> {
  let { url } = request;
  let declared: Declared = { commit: undefined, size: undefined, tag: undefined };
  for (let hop = 0; hop <= MOST_REDIRECTS; hop++) {
    if (url.username !== "" || url.password !== "")
      throw new HubError(
        "refused",
        `${shown(url)}: the address holds credentials, which are not sent; take them out and set HF_TOKEN`,
      );
    const isHub = url.origin === request.url.origin;
    const start = declared.tag === undefined ? 0 : await request.startAt(declared.tag);
    const response = await send(request, url, { isHub, start });
    if (isHub) declared = declaredBy(response, declared);
    const location = response.headers.get("location");
    if (response.status >= 300 && response.status < 400 && location !== null) {
      await dropBody(response);
      url = redirected(url, location);
      continue;
    }
    if (response.status === 416) return { response, declared };
    if (!response.ok) {
      await dropBody(response);
      throw failureOf(response, request);
    }
    const isLate = start === 0 && declared.tag !== undefined && (await request.startAt(declared.tag)) > 0;
    if (!isLate) return { response, declared };
    await dropBody(response); // the tag came with the file itself: ask again for the rest of it
  }
  throw new HubError("refused", `${shown(request.url)} leads from one address to the next without end`);
}

/** Ends an answer whose body is not wanted; one that broke off already is ended as well. */
export async function dropBody({ body }: Response): Promise<void> {
  await body?.cancel().catch(() => undefined);
}

async function send(
  { token, fetch: ask, signal, url: hub }: Request,
  url: URL,
  { isHub, start }: { readonly isHub: boolean; readonly start: number },
): Promise<Response> {
  const headers: Record<string, string> = { "accept-encoding": "identity", "user-agent": "forager" };
  if (isHub && token !== undefined && token !== "") headers.authorization = `Bearer ${sendable(token)}`;
  if (start > 0) headers.range = `bytes=${start}-`;
  try {
    return await ask(url, { headers, redirect: "manual", signal });
  } catch (cause) {
    const { cause: inner, message } = cause as Error;
    throw new HubError(
      "network",
      `cannot reach ${url.host} for ${shown(hub)} (${inner instanceof Error ? inner.message : message}); check the network and the address of the hub, or copy the files into the cache by hand`,
      { cause },
    );
  }
}

/** A token as it can be sent; `fetch` itself would show one that cannot be in its error. */
function sendable(token: string): string {
  if (/^[!-~]+$/.test(token)) return token;
  throw new HubError(
    "unauthorized",
    "the token for the hub (HF_TOKEN) holds a line break, a space or another character that no token has; copy it again",
  );
}

function redirected(from: URL, location: string): URL {
  const url = URL.parse(location, from);
  if (url === null || !["https:", "http:"].includes(url.protocol))
    throw new HubError(
      "refused",
      `${shown(from)} leads to ${JSON.stringify(url === null ? location : shown(url))}, which is no web address`,
    );
  return url;
}

/** Earlier answers count first: they are closer to the hub's own records. */
function declaredBy({ headers, status }: Response, known: Declared): Declared {
  const length = status === 200 && !headers.has("content-encoding") ? headers.get("content-length") : null;
  const size = headers.get("x-linked-size") ?? length;
  const tag = headers.get("x-linked-etag") ?? headers.get("etag");
  return {
    commit: known.commit ?? headers.get("x-repo-commit") ?? undefined,
    size: known.size ?? (size !== null && /^\d+$/.test(size) ? Number(size) : undefined),
    tag: known.tag ?? tag?.replace(/^W\//, "").replaceAll('"', ""),
  };
}

function failureOf({ status, headers }: Response, { url, token }: Request): HubError {
  const place = shown(url);
  const key =
    token === undefined || token === "" ? "no token was sent" : "the token that was sent is not accepted";
  if (status === 401)
    return new HubError(
      "unauthorized",
      `${place}: the hub wants a token (401), ${key}. Set HF_TOKEN to a token that may read it; a model that does not exist looks the same, so check the name too`,
    );
  if (status === 403)
    return new HubError(
      "forbidden",
      `${place}: no access (403), ${key}. Accept the terms of the model on its page, then set HF_TOKEN to a token of that account`,
    );
  if (status === 404)
    return new HubError("not-found", `${place} does not exist (404); check name, revision and file`);
  if (status === 429) {
    const seconds = secondsToWait(headers);
    const wait = seconds >= 0 ? { retryAfter: seconds } : {};
    const when = wait.retryAfter === undefined ? "later" : `in ${wait.retryAfter} seconds`;
    return new HubError(
      "rate-limited",
      `${place}: too many requests (429); try again ${when}, or set HF_TOKEN`,
      wait,
    );
  }
  if (status >= 500) return new HubError("server", `${place}: the hub failed (${status}); try again later`);
  return new HubError(
    "refused",
    `${place}: the hub refused with status ${status}; check the address of the hub`,
  );
}

/** What `Retry-After` says, in seconds or as a date by the hub's own clock; NaN where it says nothing. */
function secondsToWait(headers: Headers): number {
  const after = headers.get("retry-after") ?? "";
  if (/^\d+$/.test(after)) return Number(after);
  return Math.ceil((Date.parse(after) - Date.parse(headers.get("date") ?? "")) / 1000);
}
