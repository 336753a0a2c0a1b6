/**
 * Cuts text into what byte-pair encoding works on: added tokens as wholes, and between them the words of the
 * GPT-2 pattern (a word takes the space before it along; digits, letters and signs apart; English contractions).
 * White space is Unicode's White_Space, as in the Rust library `tokenizers`; a JavaScript `\s` differs from it
 * at U+0085 and U+FEFF.
 */

const wordPattern =
  /'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\p{White_Space}\p{L}\p{N}]+|\p{White_Space}+(?!\P{White_Space})|\p{White_Space}+/gu;

/** The words of a text without added tokens; joined they are the text. */
export function splitWords(text: string): readonly string[] {
  return text.match(wordPattern) ?? [];
}

/**
 * Returns a function that cuts a text at `specialTokens`: the leftmost wins, of several at one place the longest.
 * Even parts of the result lie between tokens (perhaps empty), odd parts are tokens.
 */
export function specialTokenSplitter(specialTokens: readonly string[]): (text: string) => readonly string[] {
  if (specialTokens.length === 0) return (text) => [text];
  const alternatives = [...specialTokens]
    .sort((a, b) => b.length - a.length)
    .map((token) => token.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&"));
  const pattern = new RegExp(`(${alternatives.join("|")})`);
  return (text) => text.split(pattern);
}
