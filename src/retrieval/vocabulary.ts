/**
 * The terms of an index and their numbers. Each word seen is remembered with its term, so that a word costs one
 * look-up instead of a stemming.
 */
import { type AnalysisOptions, termOf } from "./analyze.ts";

/** What a word is in the vocabulary. */
export interface KnownWord {
  /** The number of its term; undefined when no passage holds the term. */
  readonly number: number | undefined;
  readonly term: string;
  readonly isStopWord: boolean;
}

/** Longer words are not remembered, nor more words than this: memory stays bounded on a server. */
const CACHED_WORD_LENGTH = 40;
const CACHED_WORDS = 2_000_000;

export class Vocabulary {
  /** The terms by number. */
  readonly terms: string[];
  readonly #options: AnalysisOptions;
  readonly #numbers: Map<string, number>;
  readonly #words = new Map<string, KnownWord>();

  constructor(options: AnalysisOptions, terms: readonly string[] = []) {
    this.terms = [...terms];
    this.#options = options;
    this.#numbers = new Map(this.terms.map((term, number) => [term, number]));
  }

  /** Looks a folded word up. */
  find(word: string): KnownWord {
    return this.#words.get(word) ?? this.#remember(word, this.#analyze(word));
  }

  /** Looks a folded word up and gives its term the next number if it has none. */
  add(word: string): KnownWord & { readonly number: number } {
    const known = this.find(word);
    if (known.number !== undefined) return known as KnownWord & { readonly number: number };
    return this.#remember(word, { ...known, number: this.#numberOf(known.term) });
  }

  #numberOf(term: string): number {
    const known = this.#numbers.get(term);
    if (known !== undefined) return known;
    this.#numbers.set(term, this.terms.length);
    return this.terms.push(term) - 1;
  }

  #analyze(word: string): KnownWord {
    const { text, isStopWord } = termOf(word, this.#options);
    return { number: this.#numbers.get(text), term: text, isStopWord };
  }

  #remember<K extends KnownWord>(word: string, known: K): K {
    if (this.#words.size >= CACHED_WORDS) this.#words.clear();
    if (word.length <= CACHED_WORD_LENGTH) this.#words.set(word, known);
    return known;
  }
}
