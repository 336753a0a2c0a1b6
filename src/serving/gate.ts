/**
 * How many calls run at one time, and how many may wait for their turn. First come, first served; who has gone
 * away meanwhile is skipped. It does not bound how long a call runs.
 */
export class Gate {
  readonly #concurrency: number;
  readonly #queue: number;
  readonly #waiting: Set<() => void> = new Set();
  #running = 0;

  constructor(concurrency: number, queue: number) {
    this.#concurrency = concurrency;
    this.#queue = queue;
  }

  get running(): number {
    return this.#running;
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  /** Whether one more call would have to be turned away. */
  get isFull(): boolean {
    return this.#running >= this.#concurrency && this.#waiting.size >= this.#queue;
  }

  /**
   * Runs `work` when its turn comes. The place is given back when `work` has settled. Throws the signal's reason
   * when it aborts before the turn has come. Must not be called while the gate `isFull`.
   */
  async run<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T> {
    signal.throwIfAborted();
    if (this.#running < this.#concurrency) this.#running++;
    else await this.#turn(signal); // the place is handed over and stays counted
    try {
      return await work();
    } finally {
      this.#leave();
    }
  }

  #turn(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const enter = (): void => {
        signal.removeEventListener("abort", giveUp);
        resolve();
      };
      const giveUp = (): void => {
        this.#waiting.delete(enter);
        reject(signal.reason);
      };
      signal.addEventListener("abort", giveUp, { once: true });
      this.#waiting.add(enter);
    });
  }

  #leave(): void {
    const [next] = this.#waiting;
    if (next === undefined) {
      this.#running--;
      return;
    }
    this.#waiting.delete(next);
    next();
  }
}
