/**
 * Cover exact match: a gold answer occurs in the prediction, both normalised, as in `subem_check` of Search-R1.
 * It compares characters, so "art" is covered by "party". A gold answer with an empty normal form covers nothing.
 */
import { normalizeAnswer } from "./normalize-answer.ts";

/** 1 or 0; 0 without a prediction. */
export function coverExactMatch(prediction: string | undefined, goldAnswers: readonly string[]): 0 | 1 {
  if (prediction === undefined) return 0;
  const normalized = normalizeAnswer(prediction);
  const isCovered = (gold: string): boolean => gold !== "" && normalized.includes(gold);
  return goldAnswers.some((gold) => isCovered(normalizeAnswer(gold))) ? 1 : 0;
}
