/** The words of a query as terms of an index, with how much each counts; words seen before are remembered. */
import { type AnalysisOptions, termOf, wordsOf } from "./analyze.ts";
import { type CloseTerm, closestTerms, type FuzzyOptions } from "./fuzzy.ts";
import type { Vocabulary } from "./vocabulary.ts";
import { WordTable } from "./word-table.ts";

export interface QueryTermOptions extends AnalysisOptions {
  readonly fuzzy: false | FuzzyOptions;
}

/** Words that are remembered; a server meets new ones without end. */
const MOST_WORDS = 1 << 17;

/**
 * Codes: a term of the vocabulary is 2 × its number, plus 1 for a stop word; a word that is none of them is -1, or
 * -2 - i for the i-th of `#unknown` when close terms may stand in for it.
 */
const NO_TERM = -1;

export class QueryTerms {
  readonly #vocabulary: Vocabulary;
  readonly #options: QueryTermOptions;
  readonly #words: WordTable;
  #unknown: string[] = [];
  #closest: ((word: string) => CloseTerm[]) | undefined;

  constructor(options: QueryTermOptions, vocabulary: Vocabulary) {
    this.#options = options;
    this.#vocabulary = vocabulary;
    this.#words = new WordTable((run) => this.#codesOf(run), MOST_WORDS);
  }

  /** Number and weight of each term in `query`, by rising number. Stop words count in a query of nothing else. */
  weightsOf(query: string): (readonly [term: number, weight: number])[] {
    const codes = this.#words.codesOf(query);
    const hasContent = codes.some((code) => code < 0 || (code & 1) === 0);
    const weights = new Map<number, number>();
    const add = (term: number, weight: number): void => {
      weights.set(term, (weights.get(term) ?? 0) + weight);
    };
    for (const code of codes)
      if (code >= 0) {
        if (!hasContent || (code & 1) === 0) add(code >> 1, 1);
      } else if (code < NO_TERM) this.#addStandIns(this.#unknown[-2 - code] as string, add);
    this.#forget();
    return [...weights].sort(([a], [b]) => a - b);
  }

  /** Whether `query` has words, and all of them are stop words. */
  hasOnlyStopWords(query: string): boolean {
    const words = wordsOf(query, this.#options.folding);
    return words.length > 0 && words.every((word) => termOf(word, this.#options).isStopWord);
  }

  #codesOf(run: string): number[] {
    return wordsOf(run, this.#options.folding).flatMap((word) => {
      const { text, isStopWord } = termOf(word, this.#options);
      const number = this.#vocabulary.find(text);
      if (number >= 0) return [number * 2 + (isStopWord ? 1 : 0)];
      if (isStopWord) return [];
      return [this.#options.fuzzy === false ? NO_TERM : -1 - this.#unknown.push(text)];
    });
  }

  #addStandIns(word: string, add: (term: number, weight: number) => void): void {
    const { fuzzy } = this.#options;
    if (fuzzy === false) return;
    this.#closest ??= closestTerms(this.#vocabulary.all(), fuzzy);
    for (const { term, overlap } of this.#closest(word)) add(term, fuzzy.weight * overlap);
  }

  #forget(): void {
    if (this.#unknown.length < MOST_WORDS) return;
    this.#unknown = [];
    this.#words.clear();
  }
}
