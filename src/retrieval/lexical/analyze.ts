/**
 * Text to index terms: fold (`fold.ts`), take runs of letters, digits and marks, drop stop words, stem. Stop words and stems
 * exist for English only; `language: none` has neither. Scripts that write no spaces between words are cut whatever the language: Chinese, Japanese and Korean into
 * overlapping pairs of characters, Thai, Lao, Khmer and Burmese into words by the dictionary of `Intl.Segmenter`.
 */
import { z } from "zod";
import { type Folding, fold, foldingSchema } from "./fold.ts";
import { porter2 } from "./porter2.ts";
import { STOP_WORDS } from "./stop-words.ts";

export const analysisOptionsSchema = z.strictObject({
  language: z
    .enum(["english", "none"])
    .default("english")
    .describe("Whose stop words and stems are used; none uses neither, for corpora in other languages."),
  stopWords: z.boolean().default(true).describe("Leave out the stop words of the language."),
  stemming: z.boolean().default(true).describe("Reduce the words of the language to their stems."),
  folding: foldingSchema,
});
export type AnalysisOptions = z.output<typeof analysisOptionsSchema>;

export interface Term {
  /**
   * A stop word has a term of its own, in capitals as no folded word is: the stem of "ups" is not the stop word "up". Where only
   * marks are folded it is its stem, which is what indexes hold that record no folding.
   */
  readonly text: string;
  /** Whether it carries no topic; never true when `stopWords` is off. */
  readonly isStopWord: boolean;
}

/** The term that a folded word stands for. */
export function termOf(word: string, { language, stopWords, stemming, folding }: AnalysisOptions): Term {
  const isEnglish = language === "english";
  const isStopWord = isEnglish && stopWords && STOP_WORDS.has(word);
  if (isStopWord && folding === "letters") return { text: word.toUpperCase(), isStopWord };
  return { text: isEnglish && stemming ? porter2(word) : word, isStopWord };
}

/** The folded words of `text`: "São Tomé's 2nd" gives sao, tome, s, 2nd; "東京タワー" gives 東京, 京タ, タワ, ワー. */
export function wordsOf(text: string, folding: Folding = "letters"): string[] {
  if (isWord(text)) return [text];
  if (isAscii(text)) return text.toLowerCase().match(/[a-z0-9]+/g) ?? [];
  // Words are cut before they are folded, which may cut them again (a fraction becomes two numbers).
  return (text.match(WORDS) ?? []).flatMap((word) => (fold(word, folding).match(WORDS) ?? []).flatMap(cut));
}

const WORDS = /[\p{L}\p{N}\p{M}]+/gu;

/** Whether the text is a single word that folding leaves as it is, as nearly all are that a build asks about. */
function isWord(text: string): boolean {
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code < 48 || code > 122 || (code > 57 && code < 97)) return false;
  }
  return text !== "";
}

function isAscii(text: string): boolean {
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) > 127) return false;
  return true;
}

const PAIRED = String.raw`\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Bopomofo}ー々〆`;
const BY_DICTIONARY = String.raw`\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}`;
const UNSPACED = new RegExp(`[${PAIRED}${BY_DICTIONARY}]`, "u");
const IS_PAIRED = new RegExp(`^[${PAIRED}]`, "u");
/** A run of one kind; marks stay with what they follow. */
const RUNS = new RegExp(
  String.raw`[${PAIRED}][${PAIRED}\p{M}]*|[${BY_DICTIONARY}][${BY_DICTIONARY}\p{M}]*|[^${PAIRED}${BY_DICTIONARY}]+`,
  "gu",
);

/** Longer runs are cut into pieces first: the dictionary is asked about so many characters at a time. */
const LONGEST_RUN = 2000;

function cut(word: string): string[] {
  if (isAscii(word) || !UNSPACED.test(word)) return [word];
  return (word.match(RUNS) ?? []).flatMap((run) => {
    if (!UNSPACED.test(run)) return [run];
    // Folding took syllables and voiced kana apart.
    const composed = run.normalize("NFC");
    return IS_PAIRED.test(run) ? pairsOf(composed) : dictionaryWords(composed);
  });
}

function pairsOf(run: string): string[] {
  const characters = run.match(/.\p{M}*/gsu) ?? [];
  if (characters.length < 2) return characters;
  return characters.slice(1).map((character, i) => `${characters[i]}${character}`);
}

const segmenter = new Intl.Segmenter("th", { granularity: "word" });

function dictionaryWords(run: string): string[] {
  const words: string[] = [];
  for (let start = 0; start < run.length; start += LONGEST_RUN)
    for (const { segment } of segmenter.segment(run.slice(start, start + LONGEST_RUN))) words.push(segment);
  return words;
}
