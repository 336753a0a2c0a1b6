/**
 * Whether a passage holds an answer, as DPR judges it (Karpukhin et al. 2020, `has_answer`): both in NFD, lower case, cut
 * into runs of letters, numbers and marks or single other symbols; then the answer's tokens must follow each other in
 * the passage. Title and text are looked at, as CoSearch does, whose passages begin with their title in quotes.
 */
import type { Passage } from "./passage.ts";

const token = /[\p{L}\p{N}\p{M}]+|[^\p{Z}\p{C}]/gu;

/** The tokens of DPR's tokenizer, in lower case. */
export function matchTokens(text: string): string[] {
  return (text.normalize("NFD").match(token) ?? []).map((each) => each.toLowerCase());
}

/** Says of passages whether they hold any of `answers`; an answer without tokens is found nowhere. */
export function answerMatcher(
  answers: readonly string[],
): (passage: Pick<Passage, "title" | "text">) => boolean {
  const wanted = answers.map(matchTokens).filter((tokens) => tokens.length > 0);
  return ({ title, text }) => {
    const tokens = matchTokens(`"${title}"\n${text}`);
    return wanted.some((answer) => holds(tokens, answer));
  };
}

/** Whether every answer is yes, no, true or false: words that passages hold for other reasons. */
export function isVerdict(answers: readonly string[]): boolean {
  return answers.length > 0 && answers.every((answer) => /^(yes|no|true|false)$/i.test(answer.trim()));
}

function holds(tokens: readonly string[], answer: readonly string[]): boolean {
  for (let start = tokens.indexOf(answer[0] as string); start >= 0; ) {
    if (answer.every((each, i) => tokens[start + i] === each)) return true;
    start = tokens.indexOf(answer[0] as string, start + 1);
  }
  return false;
}
