/**
 * How many calls run at one time, and how many may wait for their turn. First come, first served; who has gone
 * away meanwhile is skipped. It does not bound how long a call runs.
 *
 * Calls start between two looks at the sockets, for about half a millisecond at a time. A search that only computes would otherwise
 * keep the event loop from everything else, and Node accepts one new connection a loop: of 256 clients that came at
 * once, the last ones waited for 11 s.
 */
const SLICE_MS = 0.5;

export class Gate {
  readonly #concurrency: number;
  readonly #queue: number;
  readonly #now: () => number;
  readonly #waiting: Set<() => void> = new Set();
  #running = 0;
  #isScheduled = false;

  /** `now` in milliseconds from any fixed start. */
  constructor(concurrency: number, queue: number, now: () => number) {
    this.#concurrency = concurrency;
    this.#queue = queue;
    this.#now = now;
  }

  get running(): number {
    return this.#running;
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  /** Whether one more call would have to be turned away. */
  get isFull(): boolean {
    return this.#running + this.#waiting.size >= this.#concurrency + this.#queue;
  }

  /**
   * Runs `work` when its turn comes. The place is given back when `work` has settled. Throws the signal's reason
   * when it aborts before the turn has come. Must not be called while the gate `isFull`.
   */
  run<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T> {
    return new Promise((resolve, reject) => {
      const giveUp = (): void => {
        this.#waiting.delete(start);
        reject(signal.reason);
      };
      const start = (): void => {
        signal.removeEventListener("abort", giveUp);
        this.#running++;
        work()
          .finally(() => {
            this.#running--;
            this.#schedule();
          })
          .then(resolve, reject);
      };
      if (signal.aborted) return giveUp();
      signal.addEventListener("abort", giveUp, { once: true });
      this.#waiting.add(start);
      this.#schedule();
    });
  }

  #schedule(): void {
    if (this.#isScheduled || this.#waiting.size === 0 || this.#running >= this.#concurrency) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      const end = this.#now() + SLICE_MS;
      for (const start of this.#waiting) {
        this.#waiting.delete(start);
        start();
        if (this.#running >= this.#concurrency || this.#now() >= end) break;
      }
      this.#schedule();
    });
  }
}
