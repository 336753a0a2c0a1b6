/**
 * The inverted index of consecutive passages as typed arrays (compressed sparse rows): for each term the passages
 * that hold it, in the order of the corpus, and how often. A corpus is one such segment, or several that are
 * merged (`merge-segments.ts`).
 */
import { type AnalysisOptions, termOf, wordsOf } from "./analyze.ts";
import { EntryLog } from "./entry-log.ts";
import { GrowingArray } from "./growing-array.ts";
import { sortTerms } from "./sort-terms.ts";
import { WordTable } from "./word-table.ts";

/** Rows are terms, sorted by their UTF-16 code units, each with `counts` entries, one row after the other. */
export interface Segment {
  readonly terms: readonly string[];
  /** (terms) Number of passages that hold the term. */
  readonly counts: Uint32Array;
  /** (entries) Position of the passage in the corpus, ascending within a term. */
  readonly passages: Uint32Array;
  /** (entries) How often the term occurs in the passage, at most 65,535. */
  readonly frequencies: Uint16Array;
  /** (passages) Length in terms: the text and `titleWeight` times the title, stop words aside. */
  readonly lengths: Uint32Array;
}

const MAX_FREQUENCY = 65_535;
/** Rough sizes for `bytes`: an entry while it is collected and again sorted; a term with its word, string and map. */
const BYTES_PER_ENTRY = 12;
const BYTES_PER_TERM = 200;

/** How passages become terms. */
export interface PostingsOptions extends AnalysisOptions {
  /** How many times a title counts. */
  readonly titleWeight: number;
}

/**
 * Collects passages one by one until `take`. Stop words are entered where they stand in a title only, so that
 * "The Who" can be found, and never count for the length.
 */
export class SegmentBuilder {
  readonly #titleWeight: number;
  readonly #words: WordTable;
  /** Terms by the order of their first appearance in the segment. */
  #terms: string[] = [];
  #numbers = new Map<string, number>();
  /** Number of passages that hold each term. */
  #passageCounts = new GrowingArray(Uint32Array);
  #log = new EntryLog();
  /** Number of different terms of each passage. */
  readonly #termCounts = new GrowingArray(Uint32Array);
  readonly #lengths = new GrowingArray(Uint32Array);
  /** Frequency of each term in the passage at hand, all zero between passages; `#seen` lists those that are not. */
  readonly #frequencies = new GrowingArray(Uint32Array);
  #seen = new Uint32Array(1 << 12);
  #seenCount = 0;
  #first = 0;

  constructor({ titleWeight, ...analysis }: PostingsOptions) {
    this.#titleWeight = titleWeight;
    this.#words = new WordTable((run) =>
      wordsOf(run, analysis.folding).map((word) => {
        const { text, isStopWord } = termOf(word, analysis);
        return this.#numberOf(text) * 2 + (isStopWord ? 1 : 0);
      }),
    );
  }

  /** Passages added since the start or the last `take`. */
  get passageCount(): number {
    return this.#lengths.length;
  }

  /** About how much memory `take` will need in all. */
  get bytes(): number {
    return (
      this.#log.length * BYTES_PER_ENTRY + this.#terms.length * BYTES_PER_TERM + this.#lengths.length * 12
    );
  }

  add({ title, text }: { readonly title: string; readonly text: string }): void {
    let length = this.#countText(text);
    if (this.#titleWeight > 0) length += this.#countTitle(title);
    this.#logSeen();
    this.#termCounts.push(this.#seenCount);
    this.#lengths.push(length);
    this.#seenCount = 0;
  }

  /** The passages added, sorted by term; the builder starts again with the passage that follows. */
  take(): Segment {
    const terms = sortTerms(this.#terms);
    const counts = new Uint32Array(terms.length);
    /** Where the next entry of each term goes, by the number of the term in order of appearance. */
    const next = new Uint32Array(terms.length);
    let entries = 0;
    for (const [rank, term] of terms.entries()) {
      const number = this.#numbers.get(term) as number;
      next[number] = entries;
      counts[rank] = this.#passageCounts.at(number);
      entries += counts[rank] as number;
    }
    const lengths = this.#lengths.trimmed();
    const sorted = { passages: new Uint32Array(entries), frequencies: new Uint16Array(entries) };
    this.#log.distribute(this.#termCounts.written, { next, first: this.#first, ...sorted });
    this.#reset(lengths.length);
    return { terms, counts, ...sorted, lengths };
  }

  /** Starts at passage number `first`, as if those before had been taken. */
  startAt(first: number): void {
    this.#reset(0);
    this.#first = first;
  }

  #reset(taken: number): void {
    this.#first += taken;
    this.#terms = [];
    this.#numbers = new Map();
    this.#words.clear();
    this.#passageCounts = new GrowingArray(Uint32Array);
    this.#log = new EntryLog();
    this.#termCounts.length = 0;
    this.#lengths.length = 0;
  }

  #numberOf(term: string): number {
    const known = this.#numbers.get(term);
    if (known !== undefined) return known;
    const number = this.#terms.push(term) - 1;
    this.#numbers.set(term, number);
    this.#passageCounts.set(number, 0);
    if (this.#frequencies.length <= number) this.#frequencies.set(number, 0);
    return number;
  }

  /** Counts the words that are no stop words; returns how many there were. */
  #countText(text: string): number {
    const codes = this.#words.codesOf(text);
    let length = 0;
    for (let i = 0; i < codes.length; i++) {
      const code = codes[i] as number;
      if ((code & 1) === 1) continue;
      this.#count(code >> 1, 1);
      length++;
    }
    return length;
  }

  /** Counts all words, `#titleWeight` times; returns the length of those that are no stop words. */
  #countTitle(title: string): number {
    const codes = this.#words.codesOf(title);
    let length = 0;
    for (let i = 0; i < codes.length; i++) {
      const code = codes[i] as number;
      this.#count(code >> 1, this.#titleWeight);
      if ((code & 1) === 0) length += this.#titleWeight;
    }
    return length;
  }

  #count(term: number, weight: number): void {
    const frequencies = this.#frequencies.data;
    const before = frequencies[term] as number;
    if (before === 0) {
      if (this.#seenCount === this.#seen.length) this.#enlargeSeen();
      this.#seen[this.#seenCount++] = term;
    }
    frequencies[term] = before + weight;
  }

  #enlargeSeen(): void {
    const larger = new Uint32Array(this.#seen.length * 2);
    larger.set(this.#seen);
    this.#seen = larger;
  }

  #logSeen(): void {
    const counts = this.#passageCounts.data;
    const seen = this.#seen;
    for (let i = 0; i < this.#seenCount; i++) {
      const term = seen[i] as number;
      counts[term] = (counts[term] as number) + 1;
    }
    this.#log.add(seen, this.#seenCount, { frequencies: this.#frequencies.data, most: MAX_FREQUENCY });
  }
}
