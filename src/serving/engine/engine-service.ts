/**
 * A server of the Tinker protocol without its HTTP: sessions, models, what is promised to clients, and what they sample
 * from. Each call of `calls/` is a function over this. Work of one model runs in the order of its numbers, work of
 * different models side by side as far as the backend lets it, and sampling beside both.
 */
import type { ParsedRequest } from "../../engine/tinker/wire.ts";
import { FileError, ForagerError } from "../../errors.ts";
import { HttpError } from "../http-error.ts";
import { ByteBudget } from "../read-body.ts";
import type { Backend, ModelShape, TrainedModel } from "./backend.ts";
import { Checkpoints } from "./checkpoints.ts";
import type { EngineLimits } from "./engine-limits.ts";
import { type FailureCategory, Futures, reused } from "./futures.ts";
import type { ModelLimits } from "./loss-call.ts";
import type { ModelQueue } from "./model-queue.ts";
import { Samplers } from "./samplers.ts";
import { Sessions } from "./sessions.ts";

/** What a server is made of, and what it may use of the world. */
export interface EngineServiceParts {
  readonly backend: Backend;
  /** Names under which clients may ask for the base; the first is the one it is called. */
  readonly names: readonly [string, ...string[]];
  /** Where the tokenizer can be had, for clients that load one; absent: the base's name. */
  readonly tokenizerId?: string;
  /** Holds the journal and the checkpoints. */
  readonly folder: string;
  readonly limits: EngineLimits;
  /** Aborted when the server is about to end. */
  readonly stopping?: AbortSignal;
  /** Milliseconds from any fixed start. */
  readonly now: () => number;
  /** For what clients are shown. */
  readonly date: () => Date;
  /** Eight or more hexadecimal digits, never the same twice. */
  readonly newId: () => string;
  /** A seed where a client names none. */
  readonly newSeed: () => number;
  /** Told of failures that are not the client's. */
  readonly onFailure: (error: unknown) => void;
}

export interface HostedModel {
  readonly id: string;
  readonly session: string;
  readonly baseModel: string;
  readonly shape: ModelShape;
  readonly metadata: ParsedRequest<"create_model">["user_metadata"];
  readonly queue: ModelQueue;
  /** Absent until it is made. */
  trained: TrainedModel | undefined;
  lastRequest: Date;
}

/** A request as it came, for telling it from others. */
export interface Arrival {
  readonly kind: string;
  readonly hash: string;
  /** Bytes of its body. */
  readonly bytes: number;
  readonly idempotencyKey: string | undefined;
}

export class EngineService {
  readonly parts: EngineServiceParts;
  readonly futures: Futures;
  readonly sessions: Sessions;
  readonly samplers: Samplers;
  readonly checkpoints: Checkpoints;
  readonly models = new Map<string, HostedModel>();
  readonly #held: ByteBudget;
  readonly #running = new Set<Promise<void>>();
  readonly #once = new Map<string, { readonly hash: string; readonly value: string }>();
  readonly #impatience = new AbortController();

  private constructor(parts: EngineServiceParts, futures: Futures, checkpoints: Checkpoints) {
    this.parts = parts;
    this.futures = futures;
    this.checkpoints = checkpoints;
    this.sessions = new Sessions(parts.now);
    const { backend, limits, onFailure } = parts;
    this.samplers = new Samplers({ backend, checkpoints, limits, onFailure });
    this.#held = new ByteBudget(limits.pendingBytes);
  }

  /** Opens what is on disk. Throws `FileError`. */
  static async open(parts: EngineServiceParts): Promise<EngineService> {
    const { folder, limits } = parts;
    const checkpoints = new Checkpoints(`${folder}/checkpoints`);
    await checkpoints.create();
    const futures = await Futures.open(`${folder}/futures`, {
      limits: limits.journal,
      // Sampling changes nothing: it can simply be asked for again.
      isRepeatable: (kind) => kind === "asample",
    });
    return new EngineService(parts, futures, checkpoints);
  }

  /** Throws `HttpError` (404). */
  model(id: string): HostedModel {
    const model = this.models.get(id);
    if (model === undefined)
      throw new HttpError(404, {
        expected: "a model that is loaded",
        got: `${id.slice(0, 60)}, which was never created, was unloaded, or ended with its session or a restart`,
        advice: "create one and load a checkpoint into it",
      });
    model.lastRequest = this.parts.date();
    this.sessions.touch(model.session);
    return model;
  }

  /** Throws `HttpError` (400) for a base that this server has not. */
  requireBase(name: string): void {
    if (this.parts.names.includes(name)) return;
    throw new HttpError(400, {
      expected: `a base model of this server: ${this.parts.names[0]}`,
      got: JSON.stringify(name.slice(0, 200)),
      advice: "see get_server_capabilities",
    });
  }

  get modelLimits(): ModelLimits {
    const { vocabularySize, contextLength } = this.parts.backend;
    return { vocabularySize, contextLength };
  }

  /** What was answered at once to the same request before; absent: it is new. Throws `HttpError` (409). */
  async repeated({ kind, hash }: Arrival, keys: readonly string[]): Promise<object | undefined> {
    const known = this.futures.known({ kind, hash, keys });
    if (known === undefined) return undefined;
    await known.accepted;
    return this.futures.acknowledgement(known.id);
  }

  /**
   * The value of a request that is answered without a future: made anew, or that of the same request under one of its
   * names. Throws `HttpError` (409) for another request under a known name.
   */
  once(arrival: Arrival, make: () => string, ...names: string[]): string {
    const keys = this.keysOf(arrival, ...names);
    const known = keys.map((key) => this.#once.get(key)).find((entry) => entry !== undefined);
    if (known !== undefined && known.hash !== arrival.hash) throw reused(keys[0] as string);
    const value = known?.value ?? make();
    for (const key of keys) this.#once.set(key, { hash: arrival.hash, value });
    for (const oldest of this.#once.keys()) {
      if (this.#once.size <= rememberedRequests) break;
      this.#once.delete(oldest);
    }
    return value;
  }

  /**
   * Promises the outcome of `work` and gives it to `start`, which runs it now or later; of a request that came before
   * nothing runs again. Returns what is answered at once. Throws `HttpError` (409, 429), `FileError`.
   */
  async promise(request: Promised, start: (work: StartedWork) => void): Promise<Record<string, unknown>> {
    const { arrival, keys, acknowledgement = {} } = request;
    if (this.futures.pending >= this.parts.limits.pending) throw tooMany(this.parts.limits.pending);
    this.#held.take(arrival.bytes);
    let isStarted = false;
    try {
      const { kind, hash } = arrival;
      const { id, isNew } = await this.futures.accept({ kind, hash, keys, acknowledgement });
      if (isNew) {
        isStarted = true;
        start({
          run: (work) => this.#settle(id, work, arrival.bytes),
          drop: (why) => void this.#settle(id, () => Promise.reject(new Dropped(why)), arrival.bytes),
        });
      }
      return { ...this.futures.acknowledgement(id) };
    } finally {
      if (!isStarted) this.#held.giveBack(arrival.bytes);
    }
  }

  /** Names under which a request is known beside those of its kind. */
  keysOf({ kind, idempotencyKey }: Arrival, ...keys: (string | undefined)[]): string[] {
    const own = keys.filter((key) => key !== undefined);
    return idempotencyKey === undefined
      ? own
      : [...own, `X-Idempotency-Key ${idempotencyKey.slice(0, 100)} of ${kind}`];
  }

  /** Ends sessions that said nothing for too long, and what they had. */
  async sweep(): Promise<void> {
    const { sessionMs } = this.parts.limits;
    if (sessionMs === undefined) return;
    for (const { id } of this.sessions.expire(sessionMs)) {
      this.samplers.endSession(id);
      for (const model of [...this.models.values()]) if (model.session === id) await this.unload(model);
    }
  }

  /** Forgets a model; what waits for it fails, what runs ends first. */
  async unload(model: HostedModel): Promise<void> {
    if (!this.models.delete(model.id)) return;
    await model.queue.close();
    await model.trained?.close();
  }

  /** Aborts when the server will not wait for sampling any longer. */
  get impatience(): AbortSignal {
    return this.#impatience.signal;
  }

  /**
   * Training that runs ends, what waits for its turn fails; sampling ends within `graceMs` or is forgotten, to be asked for
   * again. Outcomes are on disk afterwards.
   */
  async close(graceMs = 20_000): Promise<void> {
    const timer = setTimeout(() => this.#impatience.abort(new Impatient()), graceMs);
    for (const model of [...this.models.values()]) await this.unload(model);
    await Promise.all(this.#running);
    clearTimeout(timer);
    await this.samplers.close();
    await this.futures.close();
  }

  async #settle(id: string, work: () => Promise<unknown>, bytes: number): Promise<void> {
    const settled = this.#outcome(id, work);
    this.#running.add(settled);
    await settled;
    this.#running.delete(settled);
    this.#held.giveBack(bytes);
  }

  async #outcome(id: string, work: () => Promise<unknown>): Promise<void> {
    try {
      await this.futures.complete(id, await work());
    } catch (error) {
      if (error instanceof Impatient) return;
      if (!(error instanceof ForagerError || error instanceof HttpError || error instanceof Dropped))
        this.parts.onFailure(error);
      await this.futures.fail(id, failureText(error), categoryOf(error));
    }
  }
}

/** A request whose outcome is promised. */
export interface Promised {
  readonly arrival: Arrival;
  /** As of `Futures.accept`. */
  readonly keys: readonly string[];
  readonly acknowledgement?: Readonly<Record<string, unknown>>;
}

/** The work of a request, to be run once or dropped. */
export interface StartedWork {
  /** Runs it and keeps what comes of it; does not throw. */
  run(work: () => Promise<unknown>): Promise<void>;
  /** Fails it. */
  drop(why: string): void;
}

/** What was promised and will not be done. */
class Dropped extends Error {}
/** The server ends. */
class Impatient extends Error {}

/** Requests without a future that are told from their repetitions. */
const rememberedRequests = 10_000;

function failureText(error: unknown): string {
  if (error instanceof ForagerError || error instanceof HttpError || error instanceof Dropped)
    return error.message;
  return "the server failed, and has logged why; tell who runs it";
}

/** Only what may go better another time is the server's. */
function categoryOf(error: unknown): FailureCategory {
  if (error instanceof FileError || error instanceof Dropped) return "server";
  return error instanceof ForagerError || error instanceof HttpError ? "user" : "server";
}

function tooMany(most: number): HttpError {
  return new HttpError(
    429,
    {
      expected: `at most ${most} requests that have not ended`,
      got: "one more",
      advice: "wait for some of them",
    },
    { "retry-after": "1" },
  );
}
