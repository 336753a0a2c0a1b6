/**
 * The least difference that a paired comparison of n questions can be expected to find: (z(1 - a/2) + z(power)) s / sqrt(n)
 * at a = 0.05 and a power of 0.8, where s is the standard deviation of the differences question by question (Cohen 1988;
 * Card et al. 2020, arXiv 2010.06595, for why it belongs beside each comparison).
 */

/** z(0.975) and z(0.8). */
const significanceQuantile = 1.959963985;
const powerQuantile = 0.841621234;

/**
 * In the unit of `deviation`, which is that of the differences; undefined for no questions, and where all differ alike: a
 * sample without spread does not tell what more questions would show.
 */
export function detectableDifference(deviation: number, n: number): number | undefined {
  return n < 1 || deviation < 1e-12
    ? undefined
    : ((significanceQuantile + powerQuantile) * deviation) / Math.sqrt(n);
}

/** Questions for a difference to be found: the inverse of `detectableDifference`. */
export function questionsToDetect(deviation: number, difference: number): number {
  return Math.ceil((((significanceQuantile + powerQuantile) * deviation) / difference) ** 2);
}

/** Standard deviation of a sample, n - 1 in the denominator; 0 for fewer than two values. */
export function sampleDeviation(values: readonly number[]): number {
  if (values.length < 2) return 0;
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  const squares = values.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  return Math.sqrt(squares / (values.length - 1));
}
