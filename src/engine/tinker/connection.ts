/**
 * Calls of a Tinker server. What was surely not carried out is sent again after a growing wait, for as long as a server may
 * be away; what may have been carried out is sent again only where that is harmless. Everything else ends in an
 * `EngineError` that says what kind of failure it was, and never shows a key.
 */
import { EngineError, type EngineErrorKind } from "../../errors.ts";
import { endpointOf } from "../../shared/endpoint.ts";
import { exchange, type Failure, type HttpReply, redact } from "../../shared/http.ts";
import type { NetworkWorld } from "../../shared/network-world.ts";
import type { EngineCounts } from "../engine.ts";
import { type Profile, profiles } from "./profiles.ts";
import type { TinkerOptions } from "./tinker-options.ts";
import { judge, type Trouble } from "./trouble.ts";
import { apiPrefix } from "./wire.ts";

export interface Call {
  readonly method?: "GET" | "POST" | "DELETE";
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
  /** Seconds that the server should rather wait for the outcome than promise it (`Prefer: wait`), which not every server can. */
  readonly waitSeconds?: number;
  /** Stops waiting; the call then throws its reason. */
  readonly signal?: AbortSignal | undefined;
}

const maxReplyBytes = 1 << 30;
const longestWaitMs = 10_000;
const downloadMs = 600_000;
export class Connection {
  readonly profile: Profile;
  readonly options: TinkerOptions;
  readonly world: NetworkWorld;
  /** Where the server is, without credentials. */
  readonly url: string;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #secrets: readonly string[];
  readonly #counts = { retries: 0, polls: 0, resampled: 0 };
  readonly #note: ((text: string) => void) | undefined;
  /** When it was last said that the server is away. */
  #saidAway = Number.NEGATIVE_INFINITY;

  /** `note` is told when the server is waited for. Throws `ConfigError` when the key is missing. */
  constructor(options: TinkerOptions, world: NetworkWorld, note?: (text: string) => void) {
    const endpoint = endpointOf(
      { url: options.url, keyVariable: options.apiKeyEnv, keyHeader: "X-API-Key" },
      world,
      apiPrefix,
    );
    this.options = options;
    this.profile = profiles[options.profile];
    this.world = world;
    this.#note = note;
    this.url = endpoint.url;
    this.#headers = endpoint.headers;
    this.#secrets = endpoint.secrets;
  }

  get counts(): EngineCounts {
    return { ...this.#counts };
  }

  count(what: keyof EngineCounts): void {
    this.#counts[what]++;
  }

  /** One attempt: the reply, whatever its status, or why there was none. */
  async attempt(call: Call): Promise<HttpReply | Failure> {
    const { method = "POST", path, body, idempotencyKey, waitSeconds, signal } = call;
    // What cannot be sent again is waited for longer.
    const timeoutMs = call.timeoutMs ?? (call.repeat === "always" ? 60_000 : 240_000);
    return await exchange(
      {
        method,
        url: `${this.url}${apiPrefix}/${path}`,
        headers: {
          ...this.#headers,
          ...(idempotencyKey !== undefined && { "x-idempotency-key": idempotencyKey }),
          ...(waitSeconds !== undefined && { prefer: `wait=${waitSeconds}` }),
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

  /** The bytes at `path`, behind a redirection on the same server. Throws `EngineError`, or the signal's reason. */
  async download(path: string, signal?: AbortSignal): Promise<Uint8Array> {
    const started = this.world.now();
    const call = { method: "GET", path, repeat: "always", signal } as const;
    for (let attempt = 0; ; attempt++) {
      const found = await this.#downloadOnce(call);
      if (found instanceof Uint8Array) return found;
      if (!found.passes) throw this.error(call, found.what, found.kind);
      await this.wait(call, { attempt, started, trouble: found });
    }
  }

  async #downloadOnce({ path, signal }: Call): Promise<Uint8Array | Trouble> {
    let url = new URL(`${this.url}${apiPrefix}/${path}`);
    const timeout = AbortSignal.timeout(downloadMs);
    const until = signal === undefined ? timeout : AbortSignal.any([signal, timeout]);
    try {
      for (let hops = 0; hops < 3; hops++) {
        const response = await this.world.fetch(url, {
          headers: this.#headers,
          redirect: "manual",
          signal: until,
        });
        if (response.ok) return new Uint8Array(await response.arrayBuffer());
        const { status } = response;
        const location = response.headers.get("location");
        const next = status >= 300 && status <= 399 && location !== null ? new URL(location, url) : undefined;
        // A key must not travel to another host.
        if (next?.host !== url.host) return judge({ status, text: "" }) as Trouble;
        url = next;
      }
    } catch (cause) {
      signal?.throwIfAborted();
      return judge({ failure: `no whole answer (${String(cause)})`, isLost: true }) as Trouble;
    }
    return {
      what: "one redirection after another",
      kind: "malformed",
      passes: false,
      isUnknown: false,
      isAway: false,
    };
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
    // Once is tried again whatever the clock says: this process may have been asleep.
    const isLate = attempt > 0 && world.now() + waitMs - started > patienceMs;
    const isOver = trouble.isAway ? isLate : attempt >= retries;
    if (isOver) {
      const tried = `${attempt + 1} attempts in ${Math.round((world.now() - started) / 1000)} s`;
      throw this.error(call, `${trouble.what} (${tried})`, trouble.kind);
    }
    this.count("retries");
    if (trouble.isAway && attempt > 0) this.#sayAway(trouble);
    await world.sleep(waitMs, call.signal);
  }

  /** Once a minute, whatever the number of calls that wait. */
  #sayAway({ what }: Trouble): void {
    const now = this.world.now();
    if (this.#note === undefined || now - this.#saidAway < 60_000) return;
    this.#saidAway = now;
    const { url, options } = this;
    this.#note(
      redact(
        `${url}: ${what}; it is waited for, up to ${options.patienceMs / 1000} s (engine.patienceMs)`,
        this.#secrets,
      ),
    );
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

/** What can never succeed: a broken certificate, an answer that is too long. */
class Unreachable extends EngineError {
  constructor(message: string, options?: { cause?: unknown }) {
    super(message, { ...options, kind: "unreachable" });
  }
}
