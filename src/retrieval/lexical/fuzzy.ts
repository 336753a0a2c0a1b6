/**
 * Forgiveness for misspelt words: the terms of a vocabulary closest to an unknown one, by the Dice coefficient
 * of their character n-grams, 2 |A ∩ B| / (|A| + |B|), with one mark at each end of a word. Repeated n-grams of
 * a word count once. The table of n-grams is built in memory when first needed and is not stored.
 */
import { z } from "zod";

export const fuzzyOptionsSchema = z.strictObject({
  n: z.int().min(2).max(5).default(3).describe("Letters in an n-gram."),
  weight: z
    .number()
    .gt(0)
    .max(1)
    .default(0.8)
    .describe(
      "How much a term found in this way counts beside a term found as it is; multiplied by its Dice.",
    ),
  minOverlap: z
    .number()
    .gt(0)
    .max(1)
    .default(0.5)
    .describe("The least Dice coefficient of a term that may stand in."),
  maxTerms: z.int().min(1).max(20).default(3).describe("At most so many terms stand in for one."),
});
export type FuzzyOptions = z.output<typeof fuzzyOptionsSchema>;

export interface CloseTerm {
  /** Number of the term in the vocabulary. */
  readonly term: number;
  /** Dice coefficient, `minOverlap` to 1. */
  readonly overlap: number;
}

/** A function from a word to the closest terms of `vocabulary`, closest first, then in the order of the vocabulary. */
export function closestTerms(
  vocabulary: readonly string[],
  options: FuzzyOptions,
): (word: string) => CloseTerm[] {
  const termsOf = new Map<string, number[]>();
  const gramCounts = vocabulary.map((term, number) => {
    const grams = gramsOf(term, options.n);
    for (const gram of grams) {
      const terms = termsOf.get(gram);
      if (terms === undefined) termsOf.set(gram, [number]);
      else terms.push(number);
    }
    return grams.size;
  });
  return (word) => {
    const grams = gramsOf(word, options.n);
    const shared = new Map<number, number>();
    for (const gram of grams)
      for (const term of termsOf.get(gram) ?? []) shared.set(term, (shared.get(term) ?? 0) + 1);
    return [...shared]
      .map(([term, count]) => ({ term, overlap: (2 * count) / (grams.size + (gramCounts[term] as number)) }))
      .filter(({ overlap }) => overlap >= options.minOverlap)
      .sort((a, b) => b.overlap - a.overlap || a.term - b.term)
      .slice(0, options.maxTerms);
  };
}

function gramsOf(word: string, n: number): Set<string> {
  const marked = `^${word}$`;
  const grams = new Set<string>();
  for (let i = 0; i + n <= marked.length; i++) grams.add(marked.slice(i, i + n));
  return grams;
}
