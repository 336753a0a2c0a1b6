/**
 * The inverted index as typed arrays (compressed sparse rows): for each term the passages that hold it, in the
 * order of the corpus, and how often. Terms are numbered as they first appear.
 */

/** Rows are terms: the entries of term `t` are `starts[t]` to `starts[t + 1]` (exclusive). */
export interface Postings {
  readonly vocabulary: readonly string[];
  /** (terms + 1) */
  readonly starts: Uint32Array;
  /** (entries) Position of the passage in the corpus, ascending within a term. */
  readonly passages: Uint32Array;
  /** (entries) How often the term occurs in the passage, at most 65,535. */
  readonly frequencies: Uint16Array;
  /** (passages) Length in terms, as `add` was told. */
  readonly lengths: Uint32Array;
}

const MAX_FREQUENCY = 65_535;

/** Collects passages one by one; holds 6 bytes an entry until `finish` sorts them by term. */
export class PostingsBuilder {
  readonly #vocabulary: string[] = [];
  readonly #numbers = new Map<string, number>();
  /** Number of passages that hold each term. */
  readonly #passageCounts = new GrowingArray(Uint32Array);
  readonly #terms = new GrowingArray(Uint32Array);
  readonly #frequencies = new GrowingArray(Uint16Array);
  /** Number of different terms of each passage. */
  readonly #termCounts = new GrowingArray(Uint32Array);
  readonly #lengths = new GrowingArray(Uint32Array);

  /** Adds the next passage: its terms with their frequencies, and its length for the normalisation. */
  add(frequencies: ReadonlyMap<string, number>, length: number): void {
    for (const [term, frequency] of frequencies) {
      const number = this.#numberOf(term);
      this.#passageCounts.data[number] = (this.#passageCounts.data[number] as number) + 1;
      this.#terms.push(number);
      this.#frequencies.push(Math.min(frequency, MAX_FREQUENCY));
    }
    this.#termCounts.push(frequencies.size);
    this.#lengths.push(length);
  }

  finish(): Postings {
    const starts = new Uint32Array(this.#vocabulary.length + 1);
    for (let term = 0; term < this.#vocabulary.length; term++)
      starts[term + 1] = (starts[term] as number) + (this.#passageCounts.data[term] as number);
    const entries = this.#terms.length;
    const sorted = { passages: new Uint32Array(entries), frequencies: new Uint16Array(entries) };
    distribute(
      {
        terms: this.#terms.data,
        frequencies: this.#frequencies.data,
        termCounts: this.#termCounts.trimmed(),
      },
      starts.slice(),
      sorted,
    );
    return { vocabulary: this.#vocabulary, starts, ...sorted, lengths: this.#lengths.trimmed() };
  }

  #numberOf(term: string): number {
    const known = this.#numbers.get(term);
    if (known !== undefined) return known;
    const number = this.#vocabulary.length;
    this.#numbers.set(term, number);
    this.#vocabulary.push(term);
    this.#passageCounts.push(0);
    return number;
  }
}

/** Counting sort by term; going through the passages in order keeps each term's entries in order. */
function distribute(
  source: { terms: Uint32Array; frequencies: Uint16Array; termCounts: Uint32Array },
  next: Uint32Array,
  target: { passages: Uint32Array; frequencies: Uint16Array },
): void {
  let entry = 0;
  for (let passage = 0; passage < source.termCounts.length; passage++)
    for (const end = entry + (source.termCounts[passage] as number); entry < end; entry++) {
      const term = source.terms[entry] as number;
      const place = next[term] as number;
      next[term] = place + 1;
      target.passages[place] = passage;
      target.frequencies[place] = source.frequencies[entry] as number;
    }
}

/** A typed array that doubles when it is full. */
class GrowingArray<T extends Uint32Array | Uint16Array> {
  readonly #type: new (
    length: number,
  ) => T;
  data: T;
  length = 0;

  constructor(type: new (length: number) => T) {
    this.#type = type;
    this.data = new type(1024);
  }

  push(value: number): void {
    if (this.length === this.data.length) {
      const larger = new this.#type(this.length * 2);
      larger.set(this.data);
      this.data = larger;
    }
    this.data[this.length++] = value;
  }

  trimmed(): T {
    return this.data.slice(0, this.length) as T;
  }
}
