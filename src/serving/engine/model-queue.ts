/**
 * What is to be done with one model, one thing after the other, by the numbers clients give (`seq_id`, from 1). Requests may
 * arrive in any order: one that came before its predecessor waits a little for it. A number that never comes, since its
 * request was refused or lost, holds the others up once and for ever shorter times, and never for good.
 */

/** How long the first missing number is waited for. */
const firstPatienceMs = 1000;

export interface QueuedWork {
  /** Absent: after all that has arrived. */
  readonly number: number | undefined;
  /** Does it; must not throw. */
  readonly run: () => Promise<void>;
  /** Called instead where the queue is closed before its turn. */
  readonly drop: () => void;
}

interface Waiting extends QueuedWork {
  /** Its number, or the largest that had arrived before. */
  readonly position: number;
  readonly order: number;
}

export class ModelQueue {
  readonly #waiting: Waiting[] = [];
  readonly #arrived = new Set<number>();
  /** Numbers whose work was begun. */
  readonly #begun = new Set<number>();
  #next = 1;
  #patienceMs = firstPatienceMs;
  #largest = 0;
  #arrivals = 0;
  #isRunning = false;
  #isClosed = false;
  #wake: (() => void) | undefined;
  #gap: Gap | undefined;
  #idle: Promise<void> = Promise.resolve();

  /** How many wait for their turn. */
  get length(): number {
    return this.#waiting.length;
  }

  /** Whether work with this number was begun: sent again, it must not run again, though its outcome be forgotten. */
  hasBegun(number: number): boolean {
    return this.#begun.has(number);
  }

  add(work: QueuedWork): void {
    if (this.#isClosed) {
      work.drop();
      return;
    }
    const position = work.number ?? this.#largest;
    this.#largest = Math.max(this.#largest, position);
    this.#waiting.push({ ...work, position, order: ++this.#arrivals });
    if (work.number !== undefined) this.passed(work.number);
    if (!this.#isRunning) this.#idle = this.#run();
  }

  /** A request with this number came and was refused: nobody need wait for it. */
  passed(number: number): void {
    if (number >= this.#next) this.#arrived.add(number);
    this.#advance();
    this.#wake?.();
  }

  /** Resolves when nothing waits or runs. */
  async drained(): Promise<void> {
    while (this.#isRunning) await this.#idle;
  }

  /** Drops what waits; resolves when what runs has ended. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const { drop } of this.#waiting.splice(0)) drop();
    this.#wake?.();
    await this.#idle;
  }

  async #run(): Promise<void> {
    this.#isRunning = true;
    // Those that arrive in the same turn of the event loop are ordered before the first starts.
    await new Promise((resolve) => setImmediate(resolve));
    while (this.#waiting.length > 0) {
      const first = this.#waiting.sort(byNumber)[0] as Waiting;
      if (first.number !== undefined && first.number >= this.#next && !(await this.#gapFilled(first.number)))
        continue;
      this.#waiting.splice(this.#waiting.indexOf(first), 1);
      if (this.#isClosed) break;
      if (first.number !== undefined) this.#begun.add(first.number);
      await first.run();
    }
    clearTimeout(this.#gap?.timer);
    this.#gap = undefined;
    this.#isRunning = false;
  }

  #advance(): void {
    while (this.#arrived.delete(this.#next)) this.#next++;
  }

  /** Waits for numbers below `number`; false where something arrived meanwhile and must be looked at. */
  async #gapFilled(number: number): Promise<boolean> {
    if (this.#gap?.number !== number) this.#startGap(number);
    const gap = this.#gap as Gap;
    if (!gap.isOver)
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    this.#wake = undefined;
    if (!gap.isOver) return false;
    this.#gap = undefined;
    this.#patienceMs /= 4;
    this.#next = Math.max(this.#next, number + 1);
    for (const arrived of this.#arrived) if (arrived < this.#next) this.#arrived.delete(arrived);
    this.#advance();
    return true;
  }

  /** The wait before a number has one end, whatever else arrives. */
  #startGap(number: number): void {
    clearTimeout(this.#gap?.timer);
    const gap: Gap = { number, isOver: false, timer: undefined };
    gap.timer = setTimeout(() => {
      gap.isOver = true;
      this.#wake?.();
    }, this.#patienceMs);
    this.#gap = gap;
  }
}

/** Numbers before this one are missing. */
interface Gap {
  readonly number: number;
  isOver: boolean;
  timer: NodeJS.Timeout | undefined;
}

function byNumber(a: Waiting, b: Waiting): number {
  return a.position - b.position || a.order - b.order;
}
