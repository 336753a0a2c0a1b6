/**
 * Signals of callers joined with one signal of an owner that outlives them. Thousands of calls with the same signal share one
 * joined signal, since each costs as much as a small part of a call, and it is let go with the last of them:
 * `AbortSignal.any` would be held on to by the owner's.
 */
import { onAbort } from "./concurrency.ts";

export interface JoinedSignal {
  /** Aborts with either, for its reason. */
  readonly signal: AbortSignal;
  /** To be called once, when the call is over. */
  giveBack(): void;
}

interface Entry {
  readonly controller: AbortController;
  readonly forget: () => void;
  users: number;
}

export class JoinedSignals {
  readonly #owner: AbortSignal;
  readonly #entries = new Map<AbortSignal | undefined, Entry>();

  constructor(owner: AbortSignal) {
    this.#owner = owner;
  }

  take(signal: AbortSignal | undefined): JoinedSignal {
    const entry = this.#entries.get(signal) ?? this.#join(signal);
    entry.users++;
    return {
      signal: entry.controller.signal,
      giveBack: () => {
        entry.users--;
        if (entry.users > 0) return;
        this.#entries.delete(signal);
        entry.forget();
      },
    };
  }

  #join(signal: AbortSignal | undefined): Entry {
    const controller = new AbortController();
    const either = [signal, this.#owner];
    for (const one of either) if (one?.aborted) controller.abort(one.reason);
    const forgets = either.map((one) => onAbort(one, () => controller.abort(one?.reason)));
    const forget = (): void => {
      for (const each of forgets) each();
    };
    const entry = { controller, forget, users: 0 };
    this.#entries.set(signal, entry);
    return entry;
  }
}
