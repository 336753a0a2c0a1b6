/**
 * Text to index terms: fold (Unicode NFKD, Latin accents removed, lower case), take runs of letters, digits and
 * marks, drop English stop words, stem with Porter2. Scripts that write no spaces between words are not
 * segmented: such a run is one term.
 */
import { z } from "zod";
import { porter2 } from "./porter2.ts";
import { STOP_WORDS } from "./stop-words.ts";

export const analysisOptionsSchema = z.strictObject({
  stopWords: z.boolean().default(true).describe("Leave out English stop words."),
  stemming: z.boolean().default(true).describe("Reduce English words to their stems."),
});
export type AnalysisOptions = z.output<typeof analysisOptionsSchema>;

export interface Term {
  readonly text: string;
  /** Whether it carries no topic; never true when `stopWords` is off. */
  readonly isStopWord: boolean;
}

/** The term that a folded word stands for. */
export function termOf(word: string, options: AnalysisOptions): Term {
  return {
    text: options.stemming ? porter2(word) : word,
    isStopWord: options.stopWords && STOP_WORDS.has(word),
  };
}

/** The folded words of `text`: "São Tomé's 2nd" gives sao, tome, s, 2nd. */
export function wordsOf(text: string): string[] {
  if (isAscii(text)) return text.toLowerCase().match(/[a-z0-9]+/g) ?? [];
  // Words are cut before they are folded, which may cut them again (a fraction becomes two numbers).
  return (text.match(WORDS) ?? []).flatMap((word) => fold(word).match(WORDS) ?? []);
}

const WORDS = /[\p{L}\p{N}\p{M}]+/gu;

function fold(word: string): string {
  return word
    .normalize("NFKD")
    .replace(/[\u0300-\u036f]+/g, "")
    .toLowerCase();
}

function isAscii(text: string): boolean {
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) > 127) return false;
  return true;
}
