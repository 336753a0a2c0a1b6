/**
 * The inverted index as typed arrays (compressed sparse rows): for each term the passages that hold it, in the
 * order of the corpus, and how often. Terms are numbered as they first appear.
 */
import type { AnalysisOptions } from "./analyze.ts";
import { GrowingArray } from "./growing-array.ts";
import { GrowingVocabulary } from "./vocabulary.ts";

/** Rows are terms: the entries of term `t` are `starts[t]` to `starts[t + 1]` (exclusive). */
export interface Postings {
  readonly vocabulary: readonly string[];
  /** (terms + 1) */
  readonly starts: Uint32Array;
  /** (entries) Position of the passage in the corpus, ascending within a term. */
  readonly passages: Uint32Array;
  /** (entries) How often the term occurs in the passage, at most 65,535. */
  readonly frequencies: Uint16Array;
  /** (passages) Length in terms: the text and `titleWeight` times the title, stop words aside. */
  readonly lengths: Uint32Array;
}

const MAX_FREQUENCY = 65_535;

/** How passages become terms. */
export interface PostingsOptions extends AnalysisOptions {
  /** How many times a title counts. */
  readonly titleWeight: number;
}

/**
 * Collects passages one by one; holds 6 bytes an entry until `finish` sorts them by term. Stop words are entered
 * where they stand in a title only, so that "The Who" can be found, and never count for the length.
 */
export class PostingsBuilder {
  readonly #titleWeight: number;
  readonly #vocabulary: GrowingVocabulary;
  /** Number of passages that hold each term. */
  readonly #passageCounts = new GrowingArray(Uint32Array);
  readonly #terms = new GrowingArray(Uint32Array);
  readonly #frequencies = new GrowingArray(Uint16Array);
  /** Number of different terms of each passage. */
  readonly #termCounts = new GrowingArray(Uint32Array);
  readonly #lengths = new GrowingArray(Uint32Array);
  /** Frequency of each term in the passage at hand, all zero between passages; `#seen` lists those that are not. */
  readonly #counts = new GrowingArray(Uint32Array);
  #seen: number[] = [];

  constructor({ titleWeight, ...analysis }: PostingsOptions) {
    this.#titleWeight = titleWeight;
    this.#vocabulary = new GrowingVocabulary(analysis);
  }

  add({ title, text }: { readonly title: string; readonly text: string }): void {
    let length = this.#countText(text);
    if (this.#titleWeight > 0) length += this.#countTitle(title);
    for (const term of this.#seen) {
      this.#terms.push(term);
      this.#frequencies.push(Math.min(this.#counts.data[term] as number, MAX_FREQUENCY));
      this.#passageCounts.add(term, 1);
      this.#counts.data[term] = 0;
    }
    this.#termCounts.push(this.#seen.length);
    this.#lengths.push(length);
    this.#seen = [];
  }

  finish(): Postings {
    const vocabulary = this.#vocabulary.terms;
    const starts = new Uint32Array(vocabulary.length + 1);
    for (let term = 0; term < vocabulary.length; term++)
      starts[term + 1] = (starts[term] as number) + this.#passageCounts.at(term);
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
    return { vocabulary, starts, ...sorted, lengths: this.#lengths.trimmed() };
  }

  /** Counts the words that are no stop words; returns how many there were. */
  #countText(text: string): number {
    let length = 0;
    this.#vocabulary.forEachWord(text, ({ number, isStopWord }) => {
      if (isStopWord) return;
      this.#count(number, 1);
      length++;
    });
    return length;
  }

  /** Counts all words, `#titleWeight` times; returns the length of those that are no stop words. */
  #countTitle(title: string): number {
    let length = 0;
    this.#vocabulary.forEachWord(title, ({ number, isStopWord }) => {
      this.#count(number, this.#titleWeight);
      if (!isStopWord) length += this.#titleWeight;
    });
    return length;
  }

  #count(term: number, weight: number): void {
    if (this.#counts.at(term) === 0) this.#seen.push(term);
    this.#counts.add(term, weight);
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
