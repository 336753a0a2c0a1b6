/**
 * What clients sample from: the base, the weights a model had at a call of `save_weights_for_sampler`, or a checkpoint. The
 * weights of a call without a name are kept in memory while they are among the newest few of their model; checkpoints
 * are read when they are first asked for. Only a few at a time keep the session and cache that sampling takes.
 */
import { HttpError } from "../http-error.ts";
import type { Backend, Sampler } from "./backend.ts";
import { type Checkpoints, parseTinkerPath, tinkerPath } from "./checkpoints.ts";

export interface SamplerLimits {
  /** Newest nameless weights of a model that are kept. */
  readonly snapshots: number;
  /** Weights that are ready to sample from at once; others get ready first. */
  readonly readySamplers: number;
}

/** A sampling session as `GET samplers/ID` shows it. */
export interface SamplingSession {
  readonly id: string;
  readonly session: string;
  readonly source: SamplerSource;
}

export type SamplerSource =
  | { readonly type: "base" }
  | { readonly type: "snapshot"; readonly model: string; readonly sampler: Sampler }
  | { readonly type: "checkpoint"; readonly path: string };

interface Ready {
  readonly sampler: Sampler;
  users: number;
  /** Nobody will ask for it again. */
  isLeaving: boolean;
}

export class Samplers {
  readonly #backend: Backend;
  readonly #checkpoints: Checkpoints;
  readonly #limits: SamplerLimits;
  readonly #onFailure: (error: unknown) => void;
  readonly #sessions = new Map<string, SamplingSession>();
  /** Ids that were given and are not kept any more, the oldest first. */
  readonly #gone = new Set<string>();
  /** Most recently used last. */
  readonly #ready = new Map<Sampler, Ready>();
  readonly #opened = new Map<string, Promise<Sampler>>();
  readonly #paths = new WeakMap<Sampler, string>();

  constructor(parts: {
    readonly backend: Backend;
    readonly checkpoints: Checkpoints;
    readonly limits: SamplerLimits;
    /** Told what went wrong while weights were given up, which nobody waits for. */
    readonly onFailure: (error: unknown) => void;
  }) {
    this.#backend = parts.backend;
    this.#checkpoints = parts.checkpoints;
    this.#limits = parts.limits;
    this.#onFailure = parts.onFailure;
  }

  add(session: SamplingSession): void {
    this.#sessions.set(session.id, session);
    if (session.source.type !== "snapshot") return;
    const { model } = session.source;
    const kept = [...this.#sessions.values()].filter(
      ({ source }) => source.type === "snapshot" && source.model === model,
    );
    for (const old of kept.slice(0, Math.max(0, kept.length - this.#limits.snapshots))) this.#remove(old);
  }

  /** Throws `HttpError`: 404 for an id that was never given, 410 for weights that are not kept any more. */
  find(id: string): SamplingSession {
    const found = this.#sessions.get(id);
    if (found !== undefined) return found;
    if (this.#gone.has(id))
      throw new HttpError(410, {
        expected: `a sampling session whose weights are kept, the newest ${this.#limits.snapshots} of a model`,
        got: id.slice(0, 60),
        advice: "sample from newer weights, or save those of a step under a name",
      });
    throw new HttpError(404, {
      expected: "a sampling session of this server",
      got: `${id.slice(0, 60)}, which was never made, ended with its session, or with a restart`,
      advice: "make one (create_sampling_session or save_weights_for_sampler)",
    });
  }

  /** Forgets what belongs to a session that is over. */
  endSession(session: string): void {
    for (const sampling of [...this.#sessions.values()])
      if (sampling.session === session) this.#remove(sampling);
  }

  /** Runs `work` with the weights of a source, which stay as they are meanwhile. Throws what reading a checkpoint throws. */
  async use<T>(source: SamplerSource, work: (sampler: Sampler) => Promise<T>): Promise<T> {
    const sampler = await this.#open(source);
    const ready = this.#ready.get(sampler) ?? { sampler, users: 0, isLeaving: false };
    this.#ready.delete(sampler);
    this.#ready.set(sampler, ready);
    ready.users++;
    try {
      return await work(sampler);
    } finally {
      ready.users--;
      if (ready.isLeaving) this.#closeWhenFree(sampler);
      await this.#restOthers();
    }
  }

  async close(): Promise<void> {
    for (const session of [...this.#sessions.values()]) this.#remove(session);
    for (const opened of this.#opened.values()) await (await opened.catch(() => undefined))?.close();
  }

  async #open(source: SamplerSource): Promise<Sampler> {
    if (source.type === "base") return this.#backend.base;
    if (source.type === "snapshot") return source.sampler;
    const { path } = source;
    const known = this.#opened.get(path);
    if (known !== undefined) return await known;
    const opening = this.#read(path);
    this.#opened.set(path, opening);
    opening.catch(() => this.#opened.delete(path));
    return await opening;
  }

  async #read(path: string): Promise<Sampler> {
    const checkpoint = await this.#checkpoints.find(parseTinkerPath(path));
    const folder = this.#checkpoints.folderOf(checkpoint);
    const sampler = await this.#backend.open(folder, checkpoint.facts.shape);
    this.#paths.set(sampler, path);
    return sampler;
  }

  /** Forgets the weights of a checkpoint that was removed or written anew. */
  forget(checkpoint: Parameters<typeof tinkerPath>[0]): void {
    const path = tinkerPath(checkpoint);
    const opened = this.#opened.get(path);
    this.#opened.delete(path);
    opened?.then((sampler) => this.#closeWhenFree(sampler), this.#onFailure);
  }

  #remove({ id, source }: SamplingSession): void {
    this.#sessions.delete(id);
    this.#gone.add(id);
    for (const oldest of this.#gone) {
      if (this.#gone.size <= rememberedIds) break;
      this.#gone.delete(oldest);
    }
    if (source.type === "snapshot") this.#closeWhenFree(source.sampler);
  }

  #closeWhenFree(sampler: Sampler): void {
    const ready = this.#ready.get(sampler);
    if (ready !== undefined && ready.users > 0) {
      ready.isLeaving = true;
      return;
    }
    this.#ready.delete(sampler);
    sampler.close().catch(this.#onFailure);
  }

  /** Those that were not used for longest give back what sampling took; a checkpoint is read again when it is asked for. */
  async #restOthers(): Promise<void> {
    const idle = [...this.#ready.values()].filter(({ users }) => users === 0);
    const excess = this.#ready.size - this.#limits.readySamplers;
    for (const { sampler } of idle.slice(0, Math.max(0, excess))) {
      this.#ready.delete(sampler);
      const path = this.#paths.get(sampler);
      if (path !== undefined) this.#opened.delete(path);
      await sampler.rest();
    }
  }
}

/** Ids of weights that are gone which are told from ids that never were. */
const rememberedIds = 10_000;
