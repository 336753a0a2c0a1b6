/**
 * Where gold answers and gold passages stand in a text. Answers are found as whole words without regard to case;
 * a passage is found by its beginning, since an observation may have cut its end. What was reworded is not found:
 * the marks help the eye, they are no score.
 */

export interface Mark {
  readonly start: number;
  readonly end: number;
  readonly kind: "answer" | "passage";
}

/** Bits of `SpanView.gold`. */
export const goldAnswer = 1;
export const goldPassage = 2;

/** Characters of a passage that must be there for it to count as found. */
const minPassageLength = 24;

export function findMarks(text: string, answers: readonly string[], passages: readonly string[]): Mark[] {
  return [
    ...answers.flatMap((answer) => findAnswer(text, answer)),
    ...passages.flatMap((passage) => findPassage(text, passage)),
  ];
}

function findAnswer(text: string, answer: string): Mark[] {
  const trimmed = answer.trim();
  if (trimmed === "") return [];
  const escaped = trimmed.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  const pattern = new RegExp(`(?<![\\p{L}\\p{N}])${escaped}(?![\\p{L}\\p{N}])`, "giu");
  return [...text.matchAll(pattern)].map(({ index, 0: found }) => ({
    start: index,
    end: index + found.length,
    kind: "answer",
  }));
}

function findPassage(text: string, passage: string): Mark[] {
  const start = text.indexOf(passage.slice(0, minPassageLength));
  if (start < 0 || passage === "") return [];
  let length = 0;
  while (length < passage.length && text[start + length] === passage[length]) length++;
  return [{ start, end: start + length, kind: "passage" }];
}
