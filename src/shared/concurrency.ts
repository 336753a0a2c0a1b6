/**
 * How much is asked at once and how fast: a limiter for calls in flight, a pace for calls a second, and tasks that
 * stop together. Node's `fetch` keeps connections open between calls, so the limiter bounds the connections as well.
 */
import { setMaxListeners } from "node:events";
import type { NetworkWorld } from "./network-world.ts";

/** What each signal stops: a listener of its own for each call would cost a walk over all of them to add and to remove. */
const stopsOf = new WeakMap<AbortSignal, Set<() => void>>();

/** Calls `stop` when `signal` aborts, until the function that is returned is called; thousands may wait for one signal. */
export function onAbort(signal: AbortSignal | undefined, stop: () => void): () => void {
  if (signal === undefined) return () => undefined;
  const stops = stopsOf.get(signal) ?? listenTo(signal);
  stops.add(stop);
  return () => stops.delete(stop);
}

function listenTo(signal: AbortSignal): Set<() => void> {
  const stops = new Set<() => void>();
  stopsOf.set(signal, stops);
  // Others listen to the same signal; Node takes more than ten listeners for a leak and warns.
  setMaxListeners(0, signal);
  signal.addEventListener(
    "abort",
    () => {
      for (const stop of [...stops]) if (stops.delete(stop)) stop();
    },
    { once: true },
  );
  return stops;
}

export interface Limiter {
  /** Runs `work` as soon as fewer than the limit are running, first come first served. */
  run<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T>;
}

export function createLimiter(concurrency: number): Limiter {
  let running = 0;
  const waiting = new Set<() => void>();
  const turn = (signal: AbortSignal): Promise<void> =>
    new Promise((resolve, reject) => {
      if (running < concurrency) {
        running++;
        resolve();
        return;
      }
      const start = (): void => {
        waiting.delete(start);
        forget();
        running++;
        resolve();
      };
      const forget = onAbort(signal, () => {
        waiting.delete(start);
        reject(signal.reason);
      });
      waiting.add(start);
    });
  return {
    run: async (work, signal) => {
      signal.throwIfAborted();
      await turn(signal);
      try {
        return await work();
      } finally {
        running--;
        const [next] = waiting;
        next?.();
      }
    },
  };
}

/** Waits so that calls start at most `perSecond` times a second, evenly spaced. */
export function createPace(
  perSecond: number,
  world: Pick<NetworkWorld, "now" | "sleep">,
): (signal: AbortSignal) => Promise<void> {
  let next = Number.NEGATIVE_INFINITY;
  return async (signal) => {
    const now = world.now();
    const start = Math.max(now, next);
    next = start + 1000 / perSecond;
    if (start > now) await world.sleep(start - now, signal);
  };
}

const neverAborts = new AbortController().signal;

export interface Together {
  /** Most tasks at once. */
  readonly concurrency: number;
  readonly signal: AbortSignal | undefined;
}

/** Runs all tasks in order; when one fails or `signal` aborts, the others are aborted and that error is thrown. */
export async function runTogether<T>(
  tasks: readonly ((signal: AbortSignal) => Promise<T>)[],
  { concurrency, signal }: Together,
): Promise<T[]> {
  signal?.throwIfAborted();
  const [only] = tasks;
  // Nobody is there to be aborted by its failure.
  if (only !== undefined && tasks.length === 1) return [await only(signal ?? neverAborts)];
  const group = new AbortController();
  const forget = onAbort(signal, () => group.abort(signal?.reason));
  const results = new Array<T>(tasks.length);
  let next = 0;
  const work = async (): Promise<void> => {
    for (let index = next++; index < tasks.length; index = next++) {
      group.signal.throwIfAborted();
      results[index] = await (tasks[index] as (signal: AbortSignal) => Promise<T>)(group.signal);
    }
  };
  try {
    await Promise.all(Array.from({ length: Math.min(concurrency, tasks.length) }, work));
    return results;
  } catch (error) {
    group.abort(error);
    throw error;
  } finally {
    forget();
  }
}

/** Waits for `work`, but no longer than until `signal` aborts; then its reason is thrown. */
export async function untilAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  signal?.throwIfAborted();
  if (signal === undefined) return work;
  let forget = (): void => undefined;
  const aborted = new Promise<never>((_, reject) => {
    forget = onAbort(signal, () => reject(signal.reason));
  });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    forget();
  }
}
