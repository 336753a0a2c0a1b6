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

export interface Ranked {
  /** Position in the corpus. */
  readonly position: number;
  readonly score: number;
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

  /** The best `k` of the passages that hold a term, equal scores by position. Impacts and weights are positive. */
  rank(terms: readonly TermEntries[], k: number): Ranked[] {
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
  let threshold = 0;
  for (let passage = 0; passage < sums.length; passage++) {
    const sum = sums[passage] as number;
    if (sum > threshold) threshold = heap.offer(passage, sum);
  }
}

/** Offers the passages touched and clears their sums. */
function offerSparse(sums: Float64Array, touched: Uint32Array, heap: TopHeap): void {
  let threshold = 0;
  for (let i = 0; i < touched.length; i++) {
    const passage = touched[i] as number;
    const sum = sums[passage] as number;
    sums[passage] = 0;
    if (sum >= threshold) threshold = heap.offer(passage, sum);
  }
}

/** A heap of at most `capacity` entries with the worst on top; of equal scores the later passage is the worse. */
export class TopHeap {
  readonly #capacity: number;
  readonly #scores: Float64Array;
  readonly #positions: Uint32Array;
  #size = 0;
  constructor(capacity: number) {
    this.#capacity = capacity;
    this.#scores = new Float64Array(capacity);
    this.#positions = new Uint32Array(capacity);
  }

  /** Takes the entry if it ranks high enough; returns the score below which none can enter any more. */
  offer(position: number, score: number): number {
    if (this.#size < this.#capacity) this.#siftUp(this.#size++, position, score);
    else if (this.#isWorse(0, position, score)) this.#siftDown(position, score);
    return this.#size < this.#capacity ? 0 : (this.#scores[0] as number);
  }

  /** Everything held, best first. */
  sorted(): Ranked[] {
    const held: Ranked[] = [];
    for (let i = 0; i < this.#size; i++)
      held.push({ position: this.#positions[i] as number, score: this.#scores[i] as number });
    return held.sort((a, b) => b.score - a.score || a.position - b.position);
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
