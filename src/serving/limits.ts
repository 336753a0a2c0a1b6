/**
 * How much one request, and all requests together, may ask of a server. The defaults let a whole training batch
 * through in one call (512 questions × 5 rollouts = 2560 queries) and keep the memory of a server bounded.
 */
import { assert, ConfigError } from "../errors.ts";

export interface ServerLimits {
  /** Most bytes of one request body. */
  readonly bodyBytes: number;
  /** Most bytes of all request bodies held at one time. */
  readonly pendingBytes: number;
  /** Most queries in one call. */
  readonly queries: number;
  /** Most UTF-16 code units of one query. */
  readonly queryCharacters: number;
  /** Most passages for one query. */
  readonly k: number;
  /** Most passages in one call: queries × k. */
  readonly passages: number;
  /** Most bytes of one answer. */
  readonly answerBytes: number;
  /** About how much memory keeps documents that were written before. */
  readonly cacheBytes: number;
  /** Most calls that the retriever works on at one time. */
  readonly concurrency: number;
  /** Most calls that wait for their turn; the next one is turned away with 429. */
  readonly queue: number;
  /** From the first byte of a request to its answer, the wait included; milliseconds. */
  readonly requestMs: number;
}

export const defaultLimits: ServerLimits = {
  bodyBytes: 16 * 2 ** 20,
  pendingBytes: 256 * 2 ** 20,
  queries: 8192,
  queryCharacters: 16_384,
  k: 1000,
  passages: 200_000,
  answerBytes: 256 * 2 ** 20,
  cacheBytes: 96 * 2 ** 20,
  concurrency: 8,
  queue: 2048,
  requestMs: 60_000,
};

/** A longer timer of Node goes off at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/**
 * The defaults with what is given instead. Every limit is a whole number of at least 1; only `queue` may be 0.
 * Throws `ConfigError` for a `requestMs` beyond the longest timer.
 */
export function limitsWith(changes: Partial<ServerLimits> = {}): ServerLimits {
  const limits = { ...defaultLimits, ...changes };
  for (const [name, value] of Object.entries(limits))
    assert(Number.isInteger(value) && value >= (name === "queue" ? 0 : 1), `limit ${name} is ${value}`);
  if (limits.requestMs > LONGEST_TIMER_MS)
    throw new ConfigError(
      `the time limit of a request must be at most ${Math.floor(LONGEST_TIMER_MS / 1000)} s, got ${limits.requestMs / 1000}`,
    );
  return limits;
}
