/**
 * The inner loops of retrieval: adding up the impacts of the query's terms, and keeping the best k with a heap.
 * Each loop is a small function of its own, since V8 optimises those far better than one large body.
 */

/** Entries of one query term: rows of typed arrays, see `Postings`. */
export interface TermEntries {
  readonly passages: Uint32Array;
  readonly impacts: Float32Array;
  readonly from: number;
  readonly to: number;
  /** How much the term counts in the query. */
  readonly weight: number;
}

export interface Ranking {
  /** Positions in the corpus, best first; equal scores in the order of the corpus. */
  readonly positions: Uint32Array;
  readonly scores: Float64Array;
}

/** When the terms' entries exceed this share of the corpus, going through all sums beats a list of those touched. */
const DENSE_SHARE = 1 / 16;

/** Ranks passages by sums of impacts; owns working memory of 12 bytes a passage and serves one query at a time. */
export class Ranker {
  readonly #sums: Float64Array;
  readonly #touched: Uint32Array;

  constructor(passageCount: number) {
    this.#sums = new Float64Array(passageCount);
    this.#touched = new Uint32Array(Math.ceil(passageCount * DENSE_SHARE));
  }

  /** The best `k` of the passages that hold a term. Impacts are positive. */
  rank(terms: readonly TermEntries[], k: number): Ranking {
    const entries = terms.reduce((total, term) => total + term.to - term.from, 0);
    const heap = new TopHeap(Math.min(k, this.#sums.length, entries));
    if (entries > this.#touched.length) {
      for (const term of terms) addDense(term, this.#sums);
      offerDense(this.#sums, heap);
      this.#sums.fill(0);
    } else {
      let count = 0;
      for (const term of terms) count = addSparse(term, this.#sums, { touched: this.#touched, count });
      offerSparse(this.#sums, this.#touched.subarray(0, count), heap);
    }
    return heap.sorted();
  }
}

function addDense({ passages, impacts, from, to, weight }: TermEntries, sums: Float64Array): void {
  for (let i = from; i < to; i++) {
    const passage = passages[i] as number;
    sums[passage] = (sums[passage] as number) + weight * (impacts[i] as number);
  }
}

/** Like `addDense`, and lists each passage the first time; returns the new count. */
function addSparse(
  { passages, impacts, from, to, weight }: TermEntries,
  sums: Float64Array,
  list: { readonly touched: Uint32Array; readonly count: number },
): number {
  const { touched } = list;
  let { count } = list;
  for (let i = from; i < to; i++) {
    const passage = passages[i] as number;
    const sum = sums[passage] as number;
    if (sum === 0) touched[count++] = passage;
    sums[passage] = sum + weight * (impacts[i] as number);
  }
  return count;
}

function offerDense(sums: Float64Array, heap: TopHeap): void {
  for (let passage = 0; passage < sums.length; passage++) {
    const sum = sums[passage] as number;
    if (sum > heap.threshold) heap.offer(passage, sum);
  }
}

/** Offers the passages touched and clears their sums. */
function offerSparse(sums: Float64Array, touched: Uint32Array, heap: TopHeap): void {
  for (let i = 0; i < touched.length; i++) {
    const passage = touched[i] as number;
    const sum = sums[passage] as number;
    sums[passage] = 0;
    if (sum >= heap.threshold) heap.offer(passage, sum);
  }
}

/** A heap of at most `capacity` entries with the worst on top; of equal scores the later passage is the worse. */
export class TopHeap {
  readonly #capacity: number;
  readonly #scores: Float64Array;
  readonly #positions: Uint32Array;
  #size = 0;
  /** A score below this one cannot enter; 0 until the heap is full. */
  threshold = 0;

  constructor(capacity: number) {
    this.#capacity = capacity;
    this.#scores = new Float64Array(capacity);
    this.#positions = new Uint32Array(capacity);
  }

  offer(position: number, score: number): void {
    if (this.#size < this.#capacity) {
      this.#size++;
      this.#siftUp(this.#size - 1, position, score);
    } else if (this.#capacity > 0 && this.#isWorse(0, position, score)) {
      this.#siftDown(position, score);
    } else return;
    if (this.#size === this.#capacity) this.threshold = this.#scores[0] as number;
  }

  /** Everything held, best first; the heap is not to be used afterwards. */
  sorted(): Ranking {
    const order = Array.from({ length: this.#size }, (_, index) => index).sort(
      (a, b) =>
        (this.#scores[b] as number) - (this.#scores[a] as number) ||
        (this.#positions[a] as number) - (this.#positions[b] as number),
    );
    return {
      positions: Uint32Array.from(order, (index) => this.#positions[index] as number),
      scores: Float64Array.from(order, (index) => this.#scores[index] as number),
    };
  }

  /** Whether the entry at `index` ranks behind the given one. */
  #isWorse(index: number, position: number, score: number): boolean {
    const own = this.#scores[index] as number;
    return own < score || (own === score && (this.#positions[index] as number) > position);
  }

  #siftUp(start: number, position: number, score: number): void {
    let index = start;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      // Entries above must be worse than those below.
      if (this.#isWorse(parent, position, score)) break;
      this.#move(parent, index);
      index = parent;
    }
    this.#put(index, position, score);
  }

  #siftDown(position: number, score: number): void {
    let index = 0;
    for (let child = 1; child < this.#size; child = 2 * index + 1) {
      const right = child + 1;
      const worse =
        right < this.#size &&
        this.#isWorse(right, this.#positions[child] as number, this.#scores[child] as number)
          ? right
          : child;
      if (!this.#isWorse(worse, position, score)) break;
      this.#move(worse, index);
      index = worse;
    }
    this.#put(index, position, score);
  }

  #move(from: number, to: number): void {
    this.#put(to, this.#positions[from] as number, this.#scores[from] as number);
  }

  #put(index: number, position: number, score: number): void {
    this.#scores[index] = score;
    this.#positions[index] = position;
  }
}
