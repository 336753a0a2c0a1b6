/**
 * What the training changed: two evaluations on the same questions, compared question by question. Results whose
 * contracts differ are shown side by side without a difference, and the reason is said.
 */
import type { Breakdown } from "../../evaluation/aggregate.ts";
import { type Comparison, compareResults, IncomparableError } from "../../evaluation/compare-results.ts";
import type { MetricName } from "../../evaluation/item.ts";
import type { PairedDifference } from "../../evaluation/paired-test.ts";
import type { StoredEvaluation } from "../run-folder.ts";
import { formatShare, formatSigned } from "./scale.ts";

export interface BeforeAfter {
  readonly before: StoredEvaluation | undefined;
  readonly after: StoredEvaluation;
  readonly comparison: Comparison | undefined;
  /** Why there is no comparison although there are two results. */
  readonly refusal: string | undefined;
}

/** The evaluations named `before` and `after`, or the one there is; undefined without any. */
export function beforeAfter(evaluations: readonly StoredEvaluation[]): BeforeAfter | undefined {
  const before = evaluations.find(({ name }) => name === "before");
  const after = evaluations.find(({ name }) => name === "after") ?? (before ? undefined : evaluations.at(-1));
  if (!after)
    return before && { before: undefined, after: before, comparison: undefined, refusal: undefined };
  if (!before) return { before, after, comparison: undefined, refusal: undefined };
  try {
    const comparison = compareResults(before.result, after.result, { seed: after.result.contract.seed });
    return { before, after, comparison, refusal: undefined };
  } catch (error) {
    if (!(error instanceof IncomparableError)) throw error;
    return { before, after, comparison: undefined, refusal: error.message };
  }
}

/** The result in one sentence, for the top of the page. */
export function headline({ before, after }: BeforeAfter): string {
  const { em, n } = after.result.summary.overall;
  const start = before?.result.summary.overall.em;
  const questions = `${n} held-out questions`;
  if (!em) return `No held-out question could be scored (${after.result.summary.overall.failed} failed)`;
  if (!start) return `Exact match is ${estimateText(em)} on ${questions}`;
  const moved = em.mean > start.mean ? "rose" : em.mean < start.mean ? "fell" : "stayed";
  if (moved === "stayed") return `Exact match stayed at ${estimateText(em)} on ${questions}`;
  return `Exact match ${moved} from ${estimateText(start)} to ${estimateText(em)} on ${questions}`;
}

/** What may be concluded, in sentences. */
export function verdict({ before, after, comparison, refusal }: BeforeAfter): string[] {
  if (refusal) return [`Before and after are not compared: ${refusal}.`];
  const difference = comparison?.overall.em;
  const sentences =
    difference && before ? [differenceSentence(difference), ...searchSentences(before, after)] : [];
  const failed = after.result.summary.overall.failed;
  if (failed > 0)
    sentences.push(
      `${failed} ${failed === 1 ? "question was" : "questions were"} lost to a failure of retriever or policy, not scored as wrong.`,
    );
  return sentences;
}

function differenceSentence({ mean, ci, p, n, verdict: judged }: PairedDifference): string {
  const numbers = `${formatSigned(mean)} (95 % interval ${formatSigned(ci[0])} to ${formatSigned(ci[1])}; paired randomisation test on ${n} questions, ${formatP(p)})`;
  if (judged === "not distinguishable")
    return `Before and after are not distinguishable: the difference is ${numbers}.`;
  return `After is ${judged} than before: the difference is ${numbers}.`;
}

/** How searching changed for questions that need more than one fact; the largest number of hops speaks for all. */
function searchSentences(before: StoredEvaluation, after: StoredEvaluation): string[] {
  const hops = Object.keys(after.result.summary.byHops)
    .filter((key) => Number(key) > 1)
    .at(-1);
  const searches = (evaluation: StoredEvaluation): number | undefined =>
    hops === undefined ? undefined : evaluation.result.summary.byHops[hops]?.searches?.mean;
  const [from, to] = [searches(before), searches(after)];
  if (from === undefined || to === undefined) return [];
  const [first, second] = [from.toFixed(1), to.toFixed(1)];
  if (first === second) return [`Searches for a ${hops}-hop question stayed at ${first}.`];
  return [`Searches for a ${hops}-hop question went from ${first} to ${second}.`];
}

/** `0.41 (0.36–0.46)`. */
export function estimateText({ mean, ci }: NonNullable<Breakdown[MetricName]>): string {
  return `${formatShare(mean)} (${formatShare(ci[0])}–${formatShare(ci[1])})`;
}

/** A probability as papers write it. */
export function formatP(p: number): string {
  return p < 0.001 ? "p < 0.001" : `p = ${p.toPrecision(2)}`;
}
