/**
 * Answer normalisation of SQuAD (Rajpurkar et al. 2016, `normalize_answer` of the evaluation script): lower case,
 * then no ASCII punctuation, then no English articles, then single spaces. The meaning of word boundary and white
 * space is Python's: letters and numbers of any script make words, combining marks do not; U+001C-U+001F and
 * U+0085 are white space, U+FEFF is not. Case mapping follows the Unicode version of the Node in use, which may
 * know letters that a given Python does not, and the other way round.
 */

const punctuation = /[!-/:-@[-`{-~]/g;
const articles = /(?<![\p{L}\p{N}_])(?:a|an|the)(?![\p{L}\p{N}_])/gu;
// biome-ignore lint/suspicious/noControlCharactersInRegex: Python counts U+001C to U+001F as white space.
const whiteSpace = /[\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+/;

/** The normal form in which answers are compared; may be empty. */
export function normalizeAnswer(answer: string): string {
  return answerTokens(answer).join(" ");
}

/** The words of the normal form. */
export function answerTokens(answer: string): string[] {
  return splitWords(withoutPunctuation(answer).replace(articles, " "));
}

/** The words of a text in lower case without ASCII punctuation; articles stay. */
export function plainWords(text: string): string[] {
  return splitWords(withoutPunctuation(text));
}

function withoutPunctuation(text: string): string {
  return text.toLowerCase().replace(punctuation, "");
}

function splitWords(text: string): string[] {
  return text.split(whiteSpace).filter((token) => token !== "");
}
