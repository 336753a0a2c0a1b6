/** Exact match (SQuAD): the prediction equals a gold answer after normalisation. */
import { normalizeAnswer } from "./normalize-answer.ts";

/** 1 or 0; 0 without a prediction. */
export function exactMatch(prediction: string | undefined, goldAnswers: readonly string[]): 0 | 1 {
  if (prediction === undefined) return 0;
  const normalized = normalizeAnswer(prediction);
  return goldAnswers.some((gold) => normalizeAnswer(gold) === normalized) ? 1 : 0;
}
