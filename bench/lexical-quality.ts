/**
 * How good rankings are: share of gold passages among the first 5 and 20, reciprocal rank of the first one within 10,
 * and whether an answer stands in the first 5 and 20, over the questions that allow each; in percent.
 */
import type { Question } from "../src/corpus/question.ts";
import { bootstrapMean } from "../src/evaluation/bootstrap.ts";
import {
  containsAnswer,
  isVerdictQuestion,
  searchableText,
} from "../src/evaluation/ranking/answer-recall.ts";
import type { PassageStore } from "../src/retrieval/passage-store.ts";
import { markdownTable } from "./measure.ts";

export const qualityMetrics = ["recall@5", "recall@20", "MRR@10", "answer@5", "answer@20"] as const;
type Metric = (typeof qualityMetrics)[number];
/** The values of one question; a metric that the question does not allow is absent. */
type Scores = Partial<Record<Metric, number>>;

/** (questions) Scores of rankings, which are positions in the corpus, best first. */
export function qualityOf(
  questions: readonly Question[],
  rankings: readonly (readonly number[])[],
  passages: PassageStore,
): Scores[] {
  return questions.map((question, i) => {
    const found = (rankings[i] ?? []).slice(0, 20).map((position) => passages.get(position));
    const gold = new Set(question.goldPassages);
    const isGold = found.map(({ id }) => gold.has(id));
    const scores: Scores = {};
    if (gold.size > 0) {
      for (const k of [5, 20] as const)
        scores[`recall@${k}`] = isGold.slice(0, k).filter(Boolean).length / gold.size;
      const first = isGold.slice(0, 10).indexOf(true);
      scores["MRR@10"] = first < 0 ? 0 : 1 / (first + 1);
    }
    if (!isVerdictQuestion(question)) {
      const holds = found.map((passage) => containsAnswer(searchableText(passage), question.goldAnswers));
      for (const k of [5, 20] as const) scores[`answer@${k}`] = holds.slice(0, k).includes(true) ? 1 : 0;
    }
    return scores;
  });
}

/** A row for each metric: ours, the peer's, and the difference over the same questions, with 95 % intervals. */
export function qualityTable(ours: readonly Scores[], peer: readonly Scores[] | undefined): string {
  const rows = qualityMetrics.map((metric) => {
    const own = valuesOf(ours, metric);
    if (peer === undefined) return [metric, String(own.length), estimate(own), "not measured", ""];
    const other = valuesOf(peer, metric);
    const differences = own.map((value, i) => value - (other[i] as number));
    return [metric, String(own.length), estimate(own), estimate(other), estimate(differences)];
  });
  return markdownTable(["metric, %", "questions", "Forager", "peer", "difference"], rows);
}

function valuesOf(scores: readonly Scores[], metric: Metric): number[] {
  return scores.flatMap((score) => score[metric] ?? []);
}

function estimate(values: readonly number[]): string {
  const result = bootstrapMean(values, { seed: 1 });
  if (result === undefined) return "";
  const [low, high] = result.ci.map((value) => (100 * value).toFixed(1));
  return `${(100 * result.mean).toFixed(1)} (${low} to ${high})`;
}
