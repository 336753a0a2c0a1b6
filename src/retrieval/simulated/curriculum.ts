/**
 * How noisy a simulated search engine is at a step of the training (ZeroSearch, arXiv 2505.04588, section 3.3):
 *   p(step) = start + (base^(step / steps) - 1) / (base - 1) * (end - start)
 * With a base above 1 most of the rise comes late; a base of 1 is the straight line that the formula tends to.
 */
export interface Curriculum {
  /** Probability of a noisy answer at step 0 and at the last step, each in [0, 1]. */
  readonly start: number;
  readonly end: number;
  /** Above 0; 4 in the paper. */
  readonly base: number;
  /** Steps of the training, at least 1. */
  readonly steps: number;
}

/** The probability that an answer is noisy at `step`, in [0, 1]; constant before step 0 and after the last. */
export function noiseAt(step: number, { start, end, base, steps }: Curriculum): number {
  const progress = Math.min(Math.max(step / steps, 0), 1);
  const risen = base === 1 ? progress : (base ** progress - 1) / (base - 1);
  return start + risen * (end - start);
}
