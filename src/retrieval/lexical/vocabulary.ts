/**
 * The terms of an index and their numbers: one vocabulary that grows while an index is built, and one that only
 * looks up. Both remember the words they have seen with their terms.
 */
import { type AnalysisOptions, termOf, wordsOf } from "./analyze.ts";
import { WordTable } from "./word-table.ts";

/** A word of a text as a term of the index. */
export interface IndexedWord {
  /** The number of its term. */
  readonly number: number;
  /** Whether it carries no topic. */
  readonly isStopWord: boolean;
}

/** A word of a query. */
export interface QueryWord extends Omit<IndexedWord, "number"> {
  /** Undefined when the term is not in the vocabulary. */
  readonly number: number | undefined;
  readonly term: string;
}

/** Gives each term the next number when it first appears. */
export class GrowingVocabulary {
  /** The terms by number. */
  readonly terms: string[] = [];
  readonly #numbers = new Map<string, number>();
  readonly #words: WordTable<readonly IndexedWord[]>;

  constructor(options: AnalysisOptions) {
    this.#words = new WordTable((run) =>
      wordsOf(run).map((word) => {
        const { text, isStopWord } = termOf(word, options);
        return { number: this.#numberOf(text), isStopWord };
      }),
    );
  }

  /** Calls `visit` for each word of `text` in order. */
  forEachWord(text: string, visit: (word: IndexedWord) => void): void {
    for (const words of this.#words.valuesOf(text)) for (const word of words) visit(word);
  }

  #numberOf(term: string): number {
    const known = this.#numbers.get(term);
    if (known !== undefined) return known;
    this.#numbers.set(term, this.terms.length);
    return this.terms.push(term) - 1;
  }
}

/** Looks up the words of queries in `terms`. */
export class QueryVocabulary {
  readonly #words: WordTable<readonly QueryWord[]>;

  constructor(options: AnalysisOptions, terms: readonly string[]) {
    const numbers = new Map(terms.map((term, number) => [term, number]));
    this.#words = new WordTable((run) =>
      wordsOf(run).map((word) => {
        const { text, isStopWord } = termOf(word, options);
        return { number: numbers.get(text), term: text, isStopWord };
      }),
    );
  }

  wordsOf(query: string): QueryWord[] {
    return this.#words.valuesOf(query).flat();
  }
}
