/**
 * The best k of many scored positions: a binary heap over typed arrays with the worst entry on top. Of equal scores
 * the later position is the worse. The arrays are kept from one query to the next.
 */

/** Positions in the corpus, best first, with their scores. */
export interface Ranking {
  readonly positions: Uint32Array;
  readonly scores: Float64Array;
}

export class TopHeap {
  /** The worst score held once the heap is full: an entry of a later position must exceed it. Before that, 0. */
  threshold = 0;
  #capacity: number;
  #scores: Float64Array;
  #positions: Uint32Array;
  #size = 0;

  constructor(capacity: number) {
    this.#capacity = capacity;
    this.#scores = new Float64Array(capacity);
    this.#positions = new Uint32Array(capacity);
  }

  /** Forgets everything and holds at most `capacity` entries from now on. */
  reset(capacity: number): void {
    this.#size = 0;
    this.#capacity = capacity;
    this.threshold = 0;
    if (capacity <= this.#scores.length) return;
    this.#scores = new Float64Array(capacity);
    this.#positions = new Uint32Array(capacity);
  }

  /** Takes the entry if it ranks high enough. */
  offer(position: number, score: number): void {
    const size = this.#size;
    if (size < this.#capacity) {
      this.#size = size + 1;
      this.#siftUp(size, position, score);
    } else if (size > 0 && this.#isWorse(0, position, score)) this.#siftDown(size, position, score);
    else return;
    if (this.#size === this.#capacity) this.threshold = this.#scores[0] as number;
  }

  /** Takes everything out, best first. */
  take(): Ranking {
    const scores = new Float64Array(this.#size);
    const positions = new Uint32Array(this.#size);
    for (let rest = this.#size - 1; rest >= 0; rest--) {
      scores[rest] = this.#scores[0] as number;
      positions[rest] = this.#positions[0] as number;
      this.#siftDown(rest, this.#positions[rest] as number, this.#scores[rest] as number);
    }
    this.#size = 0;
    this.threshold = 0;
    return { positions, scores };
  }

  /** Whether the entry at `index` ranks behind the given one. */
  #isWorse(index: number, position: number, score: number): boolean {
    const own = this.#scores[index] as number;
    return own < score || (own === score && (this.#positions[index] as number) > position);
  }

  /** Puts the entry at the free place `index` and moves it up while it is worse than what is above. */
  #siftUp(index: number, position: number, score: number): void {
    const scores = this.#scores;
    const positions = this.#positions;
    let at = index;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (this.#isWorse(parent, position, score)) break;
      scores[at] = scores[parent] as number;
      positions[at] = positions[parent] as number;
      at = parent;
    }
    scores[at] = score;
    positions[at] = position;
  }

  /** Puts the entry in place of the top of a heap of `size` entries and moves it down. */
  #siftDown(size: number, position: number, score: number): void {
    const scores = this.#scores;
    const positions = this.#positions;
    let at = 0;
    for (let child = 1; child < size; child = 2 * at + 1) {
      const right = child + 1;
      if (right < size && this.#isWorse(right, positions[child] as number, scores[child] as number))
        child = right;
      if (!this.#isWorse(child, position, score)) break;
      scores[at] = scores[child] as number;
      positions[at] = positions[child] as number;
      at = child;
    }
    scores[at] = score;
    positions[at] = position;
  }
}
