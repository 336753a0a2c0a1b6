/**
 * Sessions: who is there. A session that has said nothing for a while is over, and with it its models and the weights it
 * sampled from. Whatever names it or one of its models counts as a word from it, and so does its heartbeat.
 */
import { HttpError } from "../http-error.ts";

export interface Session {
  readonly id: string;
  /** When it was last heard of, in milliseconds. */
  heard: number;
}

export class Sessions {
  readonly #sessions = new Map<string, Session>();
  readonly #now: () => number;

  /** `now` in milliseconds from any fixed start. */
  constructor(now: () => number) {
    this.#now = now;
  }

  add(id: string): Session {
    const session = { id, heard: this.#now() };
    this.#sessions.set(id, session);
    return session;
  }

  get count(): number {
    return this.#sessions.size;
  }

  /** Notes that it is there. Throws `HttpError` (404). */
  hear(id: string): Session {
    const session = this.#sessions.get(id);
    if (session === undefined)
      throw new HttpError(404, {
        expected: "a session of this server",
        got: `${id.slice(0, 60)}, which was never made, said nothing for too long, or ended with a restart`,
        advice: "make a new one (create_session)",
      });
    session.heard = this.#now();
    return session;
  }

  /** As `hear`, for what may have outlived its session. */
  touch(id: string): void {
    const session = this.#sessions.get(id);
    if (session !== undefined) session.heard = this.#now();
  }

  /** Removes and returns those that were silent for so long. */
  expire(silentMs: number): Session[] {
    const limit = this.#now() - silentMs;
    const over = [...this.#sessions.values()].filter(({ heard }) => heard < limit);
    for (const { id } of over) this.#sessions.delete(id);
    return over;
  }
}
