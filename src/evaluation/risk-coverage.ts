/**
 * Selective answering (El-Yaniv and Wiener 2010): what share of the questions is answered, and how many of those answers
 * are wrong, as fewer and fewer are given, the least confident left out first. Abstentions are never covered.
 */
import { z } from "zod";
import type { Item, ScoredItem } from "./item.ts";

const share = z.number().min(0).max(1);

export const riskCoverageSchema = z.object({
  /** Questions, answered or not. */
  n: z.int().min(1),
  /** Share that was answered, and the share of these answers that is wrong. */
  coverage: share,
  risk: share,
  /** Mean of the risk over the answers in order of confidence, lower is better; absent where answers have no confidence. */
  area: z.exactOptional(share),
  /** From most to least confident; equal confidence is one point. */
  points: z.array(z.object({ confidence: share, coverage: share, risk: share })),
});

export type RiskCoverage = Readonly<z.infer<typeof riskCoverageSchema>>;

const mostPoints = 200;

/** The curve of an evaluation by exact match; undefined where no item is scored or none is an answer. */
export function riskCoverage(items: readonly Item[]): RiskCoverage | undefined {
  const scored = items.filter((item): item is ScoredItem => !item.failed);
  const answered = scored.filter(({ answer, abstained }) => answer !== undefined && abstained !== 1);
  const n = scored.length;
  if (answered.length === 0) return undefined;
  const wrong = answered.reduce((sum, { em }) => sum + 1 - em, 0);
  const whole = { n, coverage: answered.length / n, risk: wrong / answered.length };
  if (answered.some(({ confidence }) => confidence === undefined)) return { ...whole, points: [] };
  const points = curve(answered as readonly (ScoredItem & { readonly confidence: number })[], n);
  const covered = points.reduce(
    (sum, point, i) => sum + point.risk * (point.coverage - (points[i - 1]?.coverage ?? 0)),
    0,
  );
  return { ...whole, area: covered / whole.coverage, points: thinned(points) };
}

function curve(
  answered: readonly (ScoredItem & { readonly confidence: number })[],
  n: number,
): RiskCoverage["points"] {
  const sorted = answered.toSorted((a, b) => b.confidence - a.confidence);
  let wrong = 0;
  return sorted.flatMap(({ confidence, em }, i) => {
    wrong += 1 - em;
    if (sorted[i + 1]?.confidence === confidence) return [];
    return [{ confidence, coverage: (i + 1) / n, risk: wrong / (i + 1) }];
  });
}

/** At most `mostPoints`, evenly, the last among them. */
function thinned<T>(points: readonly T[]): T[] {
  if (points.length <= mostPoints) return [...points];
  return Array.from(
    { length: mostPoints },
    (_, i) => points[Math.floor(((i + 1) * points.length) / mostPoints) - 1] as T,
  );
}
