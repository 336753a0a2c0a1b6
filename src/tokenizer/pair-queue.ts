/**
 * Counts of neighbouring pairs with the most frequent one at hand, for byte-pair training. A heap holds
 * snapshots of counts; one that is out of date when it comes up is put back with the present count.
 */
import { Heap } from "./heap.ts";

interface PairEntry {
  readonly left: number;
  readonly right: number;
  count: number;
  /** Indices of words that hold the pair, or held it once. */
  readonly words: Set<number>;
}

/** A pair with the count it had when it was put into the heap. */
interface Snapshot {
  readonly entry: PairEntry;
  readonly count: number;
}

export class PairQueue {
  readonly #entries = new Map<number, PairEntry>();
  readonly #heap = new Heap<Snapshot>(comesBefore);
  /** Entries whose count rose since the last call of `takeMostFrequent`. */
  readonly #risen = new Set<PairEntry>();

  /** Adds `change` (which may be negative) to the count of a pair that word `word` holds. */
  add(left: number, right: number, change: number, word: number): void {
    const key = pairKey(left, right);
    let entry = this.#entries.get(key);
    if (entry === undefined) {
      entry = { left, right, count: 0, words: new Set() };
      this.#entries.set(key, entry);
    }
    entry.count += change;
    if (change > 0) {
      entry.words.add(word);
      this.#risen.add(entry);
    }
  }

  /** Removes and returns the most frequent pair, of equal ones that with the smaller ids; undefined when none is left. */
  takeMostFrequent(): Readonly<PairEntry> | undefined {
    for (const entry of this.#risen) this.#heap.push({ entry, count: entry.count });
    this.#risen.clear();
    for (let top = this.#heap.pop(); top !== undefined; top = this.#heap.pop()) {
      const { entry, count } = top;
      if (entry.count === count && count > 0) {
        this.#entries.delete(pairKey(entry.left, entry.right));
        entry.count = 0;
        return { ...entry, count };
      }
      if (entry.count > 0 && entry.count < count) this.#heap.push({ entry, count: entry.count });
    }
    return undefined;
  }
}

/** Ids are below 2^24. */
function pairKey(left: number, right: number): number {
  return left * 2 ** 24 + right;
}

function comesBefore(a: Snapshot, b: Snapshot): boolean {
  if (a.count !== b.count) return a.count > b.count;
  if (a.entry.left !== b.entry.left) return a.entry.left < b.entry.left;
  return a.entry.right < b.entry.right;
}
