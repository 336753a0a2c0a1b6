/**
 * The best k of many scored positions: what may be among them is gathered, and whenever the room is full all but the
 * best k are dropped by selection, which is cheaper than a heap. Of equal scores the later position is the worse. The
 * arrays are kept from one query to the next.
 */
import { nthLargest, sortByScore } from "./select.ts";

/** Positions in the corpus, best first, with their scores. */
export interface Ranking {
  readonly positions: Uint32Array;
  readonly scores: Float64Array;
}

/** Room for so many entries for each one that is wanted, and at least for `LEAST_ROOM`. */
const ROOM = 3;
const LEAST_ROOM = 64;

export class TopK {
  /**
   * What no entry of the best k is below, once there are k; 0 before. An entry of a later position than all others must
   * exceed it.
   */
  threshold = 0;
  #k = 0;
  #room = 0;
  #count = 0;
  /** How many of the entries were the best k when the threshold was last brought up to date. */
  #settled = 0;
  #scores = new Float64Array(0);
  #positions = new Uint32Array(0);
  #work = new Float64Array(0);

  /** Forgets everything and keeps at most `k` entries from now on. */
  reset(k: number): void {
    this.#k = k;
    this.#room = k === 0 ? 0 : Math.max(LEAST_ROOM, k * ROOM);
    this.#count = 0;
    this.#settled = 0;
    this.threshold = 0;
    if (this.#room <= this.#scores.length) return;
    this.#scores = new Float64Array(this.#room);
    this.#positions = new Uint32Array(this.#room);
    this.#work = new Float64Array(this.#room);
  }

  /** Takes an entry whose score is not below the threshold. */
  offer(position: number, score: number): void {
    if (this.#count === this.#room) {
      this.settle();
      if (score < this.threshold || this.#room === 0) return;
    }
    this.#scores[this.#count] = score;
    this.#positions[this.#count++] = position;
  }

  /** Drops all but the best k and brings the threshold up to date. */
  settle(): void {
    const k = this.#k;
    if (this.#count < k || k === 0 || this.#count === this.#settled) return;
    this.#work.set(this.#scores.subarray(0, this.#count));
    const least = nthLargest(this.#work, this.#count, k);
    this.threshold = least;
    if (this.#count > k) this.#keepBest(least);
    this.#settled = this.#count;
  }

  /** Takes everything out, best first. */
  take(): Ranking {
    this.settle();
    const scores = this.#scores.slice(0, this.#count);
    const positions = this.#positions.slice(0, this.#count);
    sortByScore(scores, positions);
    this.#count = 0;
    this.#settled = 0;
    this.threshold = 0;
    return { positions, scores };
  }

  /** Keeps k entries, of those with the score `least` the first in the corpus. */
  #keepBest(least: number): void {
    const scores = this.#scores;
    const positions = this.#positions;
    const equal: number[] = [];
    let kept = 0;
    for (let i = 0; i < this.#count; i++) {
      const score = scores[i] as number;
      if (score === least) equal.push(positions[i] as number);
      if (score <= least) continue;
      scores[kept] = score;
      positions[kept++] = positions[i] as number;
    }
    if (equal.length > this.#k - kept) equal.sort((a, b) => a - b);
    for (let i = 0; kept < this.#k; i++) {
      scores[kept] = least;
      positions[kept++] = equal[i] as number;
    }
    this.#count = kept;
  }
}
