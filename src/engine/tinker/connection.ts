/**
 * Calls of a Tinker server. What was surely not carried out is sent again after a growing wait, for as long as a server may
 * be away; what may have been carried out is sent again only where that is harmless. Everything else ends in an
 * `EngineError` that says what kind of failure it was, and never shows a key.
 */
import { EngineError, type EngineErrorKind } from "../../errors.ts";
import { endpointOf } from "../../shared/endpoint.ts";
import {
  describeStatus,
  excerpt,
  exchange,
  type Failure,
  type HttpReply,
  redact,
} from "../../shared/http.ts";
import type { NetworkWorld } from "../../shared/network-world.ts";
import { type Profile, profiles } from "./profiles.ts";
import type { TinkerOptions } from "./tinker-options.ts";
import { apiPrefix } from "./wire.ts";

export interface Call {
  readonly method?: "GET" | "POST";
  /** Below `/api/v1/`. */
  readonly path: string;
  readonly body?: unknown;
  /**
   * What may be sent again: `always`, since carrying it out twice does no harm; or `unserved`, only what was surely not
   * carried out.
   */
  readonly repeat: "always" | "unserved";
  /** The same for every attempt at one request. */
  readonly idempotencyKey?: string;
  readonly timeoutMs?: number;
  /** Stops waiting; the call then throws its reason. */
  readonly signal?: AbortSignal | undefined;
}

/** What went wrong and was made up for since the connection was opened. */
export interface ConnectionCounts {
  /** Attempts that were sent again. */
  readonly retries: number;
  /** Polls that ended without a result: the long wait of a slow one, or an error that passed. */
  readonly polls: number;
  /** Samples that were asked for anew because their result was gone. */
  readonly resampled: number;
}

const maxReplyBytes = 1 << 30;
const longestWaitMs = 10_000;
const downloadMs = 600_000;
/** The server said that it did not take the request. */
const refused = new Set([425, 429]);
/** The server, or a proxy before it, is away or overloaded; whether it took the request is not known. */
const away = new Set([408, 502, 503, 504]);

export class Connection {
  readonly profile: Profile;
  readonly options: TinkerOptions;
  readonly world: NetworkWorld;
  /** Where the server is, without credentials. */
  readonly url: string;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #secrets: readonly string[];
  readonly #counts = { retries: 0, polls: 0, resampled: 0 };

  /** Throws `ConfigError` when the key is missing. */
  constructor(options: TinkerOptions, world: NetworkWorld) {
    const endpoint = endpointOf(
      { url: options.url, keyVariable: options.apiKeyEnv, keyHeader: "X-API-Key" },
      world,
      apiPrefix,
    );
    this.options = options;
    this.profile = profiles[options.profile];
    this.world = world;
    this.url = endpoint.url;
    this.#headers = endpoint.headers;
    this.#secrets = endpoint.secrets;
  }

  get counts(): ConnectionCounts {
    return { ...this.#counts };
  }

  count(what: keyof ConnectionCounts): void {
    this.#counts[what]++;
  }

  /** One attempt: the reply, whatever its status, or why there was none. */
  async attempt(call: Call): Promise<HttpReply | Failure> {
    const { method = "POST", path, body, idempotencyKey, timeoutMs = 60_000, signal } = call;
    return await exchange(
      {
        method,
        url: `${this.url}${apiPrefix}/${path}`,
        headers: {
          ...this.#headers,
          ...(idempotencyKey !== undefined && { "x-idempotency-key": idempotencyKey }),
        },
        ...(method === "POST" && { body: body ?? {} }),
      },
      { error: Unreachable, timeoutMs, retries: 0, backoffMs: 1, maxReplyBytes, secrets: this.#secrets },
      { world: this.world, signal },
    );
  }

  /** The JSON of a successful answer. Throws `EngineError`, or the signal's reason. */
  async call(call: Call): Promise<unknown> {
    const started = this.world.now();
    let isSentAgain = false;
    for (let attempt = 0; ; attempt++) {
      call.signal?.throwIfAborted();
      const trouble = judge(await this.attempt(call));
      if ("json" in trouble) return trouble.json;
      // After an attempt whose fate is not known, a conflict may be with that attempt.
      if (!trouble.passes)
        throw this.error(
          call,
          trouble.what,
          isSentAgain && trouble.kind === "conflict" ? "lost" : trouble.kind,
        );
      if (trouble.isUnknown && call.repeat === "unserved")
        throw this.error(
          call,
          `${trouble.what}, so that nobody knows whether it was carried out, and on ${this.profile.title} sending it again could train twice; the run goes on from its last checkpoint (forager train --resume)`,
          "lost",
        );
      isSentAgain ||= trouble.isUnknown;
      await this.wait(call, { attempt, started, trouble });
    }
  }

  /** The bytes at `path`, behind a redirection on the same server. Throws `EngineError`. */
  async download(path: string, signal?: AbortSignal): Promise<Uint8Array> {
    let url = new URL(`${this.url}${apiPrefix}/${path}`);
    for (let hops = 0; hops < 3; hops++) {
      const timeout = AbortSignal.timeout(downloadMs);
      const response = await this.world
        .fetch(url, {
          headers: this.#headers,
          redirect: "manual",
          signal: signal === undefined ? timeout : AbortSignal.any([signal, timeout]),
        })
        .catch((cause: unknown) => {
          signal?.throwIfAborted();
          throw this.error({ method: "GET", path }, `no answer (${String(cause)})`, "unreachable");
        });
      if (response.ok) return new Uint8Array(await response.arrayBuffer());
      const location = response.headers.get("location");
      const next = location === null ? undefined : new URL(location, url);
      // A key must not travel to another host.
      if (response.status < 300 || response.status > 399 || next === undefined || next.host !== url.host)
        throw this.error(
          { method: "GET", path },
          `got ${response.status}`,
          kinds[response.status] ?? "failed",
        );
      url = next;
    }
    throw this.error({ method: "GET", path }, "got one redirection after another", "malformed");
  }

  /** Waits before the next attempt. Throws `EngineError` when it was tried for long enough. */
  async wait(
    call: Call,
    {
      attempt,
      started,
      trouble,
    }: { readonly attempt: number; readonly started: number; readonly trouble: Trouble },
  ): Promise<void> {
    const { retries, backoffMs, patienceMs } = this.options;
    const { world } = this;
    const waitMs = Math.max(
      trouble.waitMs ?? 0,
      Math.min(longestWaitMs, backoffMs * 2 ** attempt) * (0.5 + world.random()),
    );
    const isOver = trouble.isAway ? world.now() + waitMs - started > patienceMs : attempt >= retries;
    if (isOver) {
      const tried = `${attempt + 1} attempts in ${Math.round((world.now() - started) / 1000)} s`;
      throw this.error(call, `${trouble.what} (${tried})`, trouble.kind);
    }
    this.count("retries");
    await world.sleep(waitMs, call.signal);
  }

  /** An error of this server that shows no key. */
  error(
    { method = "POST", path }: Pick<Call, "method" | "path">,
    what: string,
    kind: EngineErrorKind,
  ): EngineError {
    return new EngineError(redact(`${method} ${this.url}${apiPrefix}/${path}: ${what}`, this.#secrets), {
      kind,
    });
  }
}

export interface Trouble {
  readonly what: string;
  readonly kind: EngineErrorKind;
  /** A cause that may pass. */
  readonly passes: boolean;
  /** Whether the request was carried out is not known. */
  readonly isUnknown: boolean;
  /** The server is away or busy, which is waited out; else a few attempts are enough. */
  readonly isAway: boolean;
  readonly waitMs?: number | undefined;
}

/** The JSON of a success, or what is wrong with an outcome. */
export function judge(outcome: HttpReply | Failure): { readonly json: unknown } | Trouble {
  if ("failure" in outcome)
    return {
      what: outcome.failure,
      kind: "unreachable",
      passes: true,
      isUnknown: outcome.isLost === true,
      isAway: true,
    };
  const { status, text, waitMs } = outcome;
  if (status >= 200 && status < 300) return readJson(text);
  const passing = { what: `got ${describeStatus(outcome)}`, passes: true, waitMs };
  if (refused.has(status)) return { ...passing, kind: "unreachable", isUnknown: false, isAway: true };
  if (away.has(status)) return { ...passing, kind: "unreachable", isUnknown: true, isAway: true };
  if (status >= 500) return { ...passing, kind: "failed", isUnknown: true, isAway: false };
  const kind = kinds[status] ?? "rejected";
  return {
    ...passing,
    what: `got ${statusText(outcome)}`,
    kind,
    passes: false,
    isUnknown: false,
    isAway: false,
  };
}

const kinds: Readonly<Record<number, EngineErrorKind>> = {
  401: "unauthorized",
  402: "unauthorized",
  403: "unauthorized",
  404: "gone",
  409: "conflict",
  410: "gone",
};

/** A reply that broke off is none, nor is one with NaN, which JSON has no number for. */
function readJson(text: string): { readonly json: unknown } | Trouble {
  try {
    return { json: JSON.parse(text) };
  } catch {
    const holdsNaN = /\bNaN\b|\bInfinity\b/.test(text);
    return {
      what: holdsNaN
        ? `the answer holds a number that is none (${excerpt(text, 80)})`
        : `expected JSON, got ${excerpt(text)}`,
      kind: "malformed",
      passes: !holdsNaN,
      isUnknown: true,
      isAway: false,
    };
  }
}

/** A status with what the server says of it: a `detail` of FastAPI, or the start of its text. */
function statusText(reply: HttpReply): string {
  const detail = detailOf(reply.text);
  const advice = reply.status === 402 ? " (the account is paused; look at its billing)" : "";
  return detail === undefined ? describeStatus(reply) : `${reply.status}${advice}: ${detail.slice(0, 500)}`;
}

/** What a refusal says: a text, or the first complaints about a body with their places. */
export function detailOf(text: string): string | undefined {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    return undefined;
  }
  const { detail, error } = (parsed ?? {}) as { readonly detail?: unknown; readonly error?: unknown };
  if (typeof detail === "string") return detail;
  if (typeof error === "string") return error;
  if (!Array.isArray(detail)) return undefined;
  const complaints = detail.slice(0, 3).map((one: { readonly loc?: unknown; readonly msg?: unknown }) => {
    const place = Array.isArray(one?.loc) ? one.loc.join(".") : "";
    return `${place}: ${String(one?.msg)}`;
  });
  return complaints.join("; ");
}

/** What can never succeed: a port that fetch refuses, a broken certificate, an answer that is too long. */
class Unreachable extends EngineError {
  constructor(message: string, options?: { cause?: unknown }) {
    super(message, { ...options, kind: "unreachable" });
  }
}
