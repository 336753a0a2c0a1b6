/** How much clients together may ask of a server of models. */
import { assert, ConfigError } from "../../errors.ts";
import { defaultJournalLimits, type JournalLimits } from "./journal.ts";
import type { SamplerLimits } from "./samplers.ts";

export interface EngineLimits extends SamplerLimits {
  /** Most bytes of one request body. */
  readonly bodyBytes: number;
  /** Most bytes of bodies that are read at one time, and of those whose work has not ended. */
  readonly pendingBytes: number;
  /** Most requests that have not ended; the next is turned away with 429. */
  readonly pending: number;
  /** Most models at one time. */
  readonly models: number;
  /** Most sequences of one `asample`. */
  readonly samples: number;
  /** How long `retrieve_future` waits before it answers `try_again`; below the 45 s of the official client. */
  readonly holdMs: number;
  /** From the first byte of a request to its answer; above `holdMs`. */
  readonly requestMs: number;
  /** Silence after which a session is over; undefined: never. */
  readonly sessionMs: number | undefined;
  readonly journal: JournalLimits;
}

export const defaultEngineLimits: EngineLimits = {
  bodyBytes: 64 * 2 ** 20,
  pendingBytes: 1024 * 2 ** 20,
  pending: 20_000,
  models: 16,
  samples: 1024,
  holdMs: 30_000,
  requestMs: 60_000,
  sessionMs: 300_000,
  snapshots: 8,
  readySamplers: 3,
  journal: defaultJournalLimits,
};

/** The defaults with what is given instead. Throws `ConfigError` where a request would end before its wait. */
export function engineLimitsWith(changes: Partial<EngineLimits> = {}): EngineLimits {
  const limits = { ...defaultEngineLimits, ...changes };
  for (const [name, value] of Object.entries(limits))
    assert(typeof value !== "number" || (Number.isInteger(value) && value >= 1), `limit ${name} is ${value}`);
  if (limits.holdMs >= limits.requestMs)
    throw new ConfigError(
      `the time limit of a request must be more than the ${limits.holdMs / 1000} s for which a poll is held, got ${limits.requestMs / 1000} s`,
    );
  return limits;
}
