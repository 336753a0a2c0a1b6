/**
 * The weights that a policy samples from: a snapshot for each version of a model, made when it is first asked for. Where a server
 * cannot keep a snapshot apart from what is trained, sampling from an older one would overwrite the weights in silence; that,
 * and a change of the weights while samples are in flight, is refused.
 */
import { EngineError } from "../../errors.ts";
import type { RemoteModel } from "./remote-model.ts";
import type { Session } from "./session.ts";

/** Weights on the server that can be sampled from. */
export interface Sampler {
  readonly sessionId: string;
  /** Updates of the weights, counted by the engine. */
  readonly version: number;
  /** Number for the next call, of an episode where the server wants one for each. */
  seqId(episode: string | undefined): number;
}

export class SamplerSource {
  readonly #session: Session;
  readonly #model: () => RemoteModel;
  #version = 0;
  #inFlight = 0;
  #sampler: { readonly version: number; readonly opened: Promise<Sampler> } | undefined;

  /** `model` gives the one that is trained now. */
  constructor(session: Session, model: () => RemoteModel) {
    this.#session = session;
    this.#model = model;
  }

  /** Counts changes of the weights. */
  get version(): number {
    return this.#version;
  }

  /** The weights changed, or are about to. */
  changed(): void {
    this.#version++;
    this.#sampler = undefined;
  }

  /** Throws `EngineError` (`stale`) where `what` may not happen while samples are in flight. */
  requireNoSampling(what: string): void {
    const { keepsSnapshots, title } = this.#session.connection.profile;
    if (keepsSnapshots || this.#inFlight === 0) return;
    throw new EngineError(
      `${title} would overwrite the weights with those of the ${this.#inFlight} samples in flight; wait for them before ${what}`,
      { kind: "stale" },
    );
  }

  /** A snapshot of the weights of now. Throws `EngineError`. */
  async open(): Promise<Sampler> {
    const version = this.#version;
    if (this.#sampler?.version !== version) {
      const opened = this.#make(version);
      this.#sampler = { version, opened };
      opened.catch(() => {
        if (this.#sampler?.opened === opened) this.#sampler = undefined;
      });
    }
    return await this.#sampler.opened;
  }

  /** Runs work that samples. Throws `EngineError` (`stale`) where the weights have moved on and may not be overwritten. */
  async run<T>(sampler: Sampler, work: () => Promise<T>): Promise<T> {
    const { keepsSnapshots, title } = this.#session.connection.profile;
    if (!keepsSnapshots && sampler.version !== this.#version)
      throw new EngineError(
        `the weights changed ${this.#version - sampler.version} times since this policy was made, and on ${title} sampling from older ones overwrites them; take the engine's policy anew`,
        { kind: "stale" },
      );
    this.#inFlight++;
    try {
      return await work();
    } finally {
      this.#inFlight--;
    }
  }

  async #make(version: number): Promise<Sampler> {
    const session = this.#session;
    const path = "save_weights_for_sampler";
    // Posted at once: a step that is called next must come after it.
    const saved = this.#model().run(path, { sampling_session_seq_id: session.nextSampler() });
    await Promise.all([saved, session.remember()]);
    const sessionId = (await saved).sampling_session_id;
    if (typeof sessionId !== "string")
      throw session.connection.error({ path }, "expected a sampling_session_id, got none", "malformed");
    return { sessionId, version, seqId: numbering(session.connection.profile.sampleIds === "sticky") };
  }
}

/** Counts calls, or episodes where a router finds its cache by them. */
function numbering(isSticky: boolean): Sampler["seqId"] {
  let next = 0;
  const episodes = new Map<string, number>();
  return (episode) => {
    if (!isSticky || episode === undefined) return next++;
    const known = episodes.get(episode) ?? next++;
    episodes.set(episode, known);
    return known;
  };
}
