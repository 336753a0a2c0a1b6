/**
 * Text as LanceDB indexes it: the terms of our own analysis, with a space between. Its tokenizer only cuts at the spaces,
 * so that folding, stems, Chinese and Thai are as in the embedded index, and nothing in a query has a meaning to its
 * parser. A term counts once in a query, however often it stands there.
 */
import type { PassageText } from "../dense/encoder.ts";
import { type Term, termOf, wordsOf } from "../lexical/analyze.ts";
import type { LanceBuildOptions } from "./lance-options.ts";

/** Longer terms are not indexed. */
export const LONGEST_TERM = 255;
/** Words whose terms are remembered. */
const MOST_WORDS = 1 << 17;

export interface LanceTerms {
  /** The terms of a passage, those of the title as often as it counts. */
  ofPassage(passage: PassageText): string;
  /** The terms of a query, stop words only when it has nothing else; empty when it has none. */
  ofQuery(query: string): string;
}

export function lanceTerms(options: LanceBuildOptions): LanceTerms {
  const known = new Map<string, Term>();
  const lookUp = (word: string): Term => {
    let term = known.get(word);
    if (term === undefined) {
      if (known.size >= MOST_WORDS) known.clear();
      term = termOf(word, options);
      known.set(word, term);
    }
    return term;
  };
  const join = (text: string): string =>
    wordsOf(text, options.folding)
      .map((word) => lookUp(word).text)
      .join(" ");
  return {
    ofPassage: ({ title, text }) =>
      [...Array<string>(options.titleWeight).fill(options.titleWeight === 0 ? "" : join(title)), join(text)]
        .filter((part) => part !== "")
        .join(" "),
    ofQuery: (query) => {
      const terms = wordsOf(query, options.folding)
        .filter((word) => word.length <= LONGEST_TERM)
        .map(lookUp);
      const content = terms.filter(({ isStopWord }) => !isStopWord);
      return [...new Set((content.length > 0 ? content : terms).map(({ text }) => text))].join(" ");
    },
  };
}
