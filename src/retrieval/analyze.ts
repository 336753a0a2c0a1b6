/**
 * Text to index terms: fold (Unicode NFKD, Latin accents removed, lower case), take runs of letters, digits and
 * marks, drop English stop words, stem with Porter2. Scripts that write no spaces between words are not
 * segmented: such a run is one term.
 */
import { z } from "zod";
import { porter2 } from "./porter2.ts";
import { STOP_WORDS } from "./stop-words.ts";

export const analysisOptionsSchema = z.strictObject({
  /** Leave out English stop words. Default true. */
  stopWords: z.boolean().default(true),
  /** Reduce English words to their stems. Default true. */
  stemming: z.boolean().default(true),
});
export type AnalysisOptions = z.output<typeof analysisOptionsSchema>;

export interface Analyzer {
  /** The terms of `text` in order, stop words left out. */
  terms(text: string): string[];
  /** The terms of `text` in order, stop words among them. */
  allTerms(text: string): string[];
}

/** Words longer than this are not remembered, nor more words than this: memory stays bounded on a server. */
const CACHED_WORD_LENGTH = 40;
const CACHED_WORDS = 1_000_000;

/** An analyser that remembers the stem of each word it has seen. */
export function createAnalyzer(options: AnalysisOptions): Analyzer {
  const stems = new Map<string, string>();
  const stemOf = (word: string): string => {
    const known = stems.get(word);
    if (known !== undefined) return known;
    const stem = options.stemming ? porter2(word) : word;
    if (stems.size >= CACHED_WORDS) stems.clear();
    if (word.length <= CACHED_WORD_LENGTH) stems.set(word, stem);
    return stem;
  };
  const allTerms = (text: string): string[] => wordsOf(text).map(stemOf);
  const contentTerms = (text: string): string[] =>
    wordsOf(text)
      .filter((word) => !STOP_WORDS.has(word))
      .map(stemOf);
  return { allTerms, terms: options.stopWords ? contentTerms : allTerms };
}

/** The folded words of `text`: "São Tomé's 2nd" gives sao, tome, s, 2nd. */
export function wordsOf(text: string): string[] {
  if (isAscii(text)) return text.toLowerCase().match(/[a-z0-9]+/g) ?? [];
  const folded = text
    .normalize("NFKD")
    .replace(/[\u0300-\u036f]+/g, "")
    .toLowerCase();
  return folded.match(/[\p{L}\p{N}\p{M}]+/gu) ?? [];
}

function isAscii(text: string): boolean {
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) > 127) return false;
  return true;
}
