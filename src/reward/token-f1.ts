/**
 * Token F1 (SQuAD): harmonic mean of precision and recall over the words of the normal forms, counted as bags;
 * the best over the gold answers. HotpotQA's special rule for yes and no is not applied.
 */
import { answerTokens } from "./normalize-answer.ts";

/** In [0, 1]; 0 without a prediction. */
export function tokenF1(prediction: string | undefined, goldAnswers: readonly string[]): number {
  if (prediction === undefined) return 0;
  const predicted = answerTokens(prediction);
  return goldAnswers.reduce((best, gold) => Math.max(best, f1(predicted, answerTokens(gold))), 0);
}

function f1(predicted: readonly string[], gold: readonly string[]): number {
  const left = new Map<string, number>();
  for (const token of gold) left.set(token, (left.get(token) ?? 0) + 1);
  let common = 0;
  for (const token of predicted) {
    const count = left.get(token) ?? 0;
    if (count === 0) continue;
    left.set(token, count - 1);
    common++;
  }
  return common === 0 ? 0 : (2 * common) / (predicted.length + gold.length);
}
