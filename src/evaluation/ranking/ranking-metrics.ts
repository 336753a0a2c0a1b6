/**
 * Metrics of a ranking as trec_eval computes them: P, recall, success, map, map_cut, recip_rank, ndcg and ndcg_cut
 * (Järvelin and Kekäläinen 2002; the gain is the grade, the discount log2(rank + 1)), here called precision@k,
 * recall@k, success@k, map, map@k, mrr, mrr@k, ndcg and ndcg@k. Besides judged@k, the share of the first k results
 * that have a judgement: where it is low the other numbers say little.
 * Relevant is a grade of at least `relevantFrom`; nDCG counts every grade above 0.
 */
import { UsageError } from "../../errors.ts";

const withCutoff = ["precision", "recall", "success", "judged"] as const;
const withoutCutoff = ["map", "mrr", "ndcg"] as const;
type Kind = (typeof withCutoff)[number] | (typeof withoutCutoff)[number];

export interface RankingMetric {
  /** As it is written, such as `ndcg@10`. */
  readonly name: string;
  readonly kind: Kind;
  /** Results after this rank do not count; infinite for all. */
  readonly cutoff: number;
}

/** What is shown when nothing else is asked for. */
export const defaultMetrics: readonly string[] = ["recall@5", "recall@20", "ndcg@10", "mrr", "map"];

/** A metric from its name. Throws `UsageError` that lists what there is. */
export function parseMetric(name: string): RankingMetric {
  const [, word = "", digits] = /^([a-z]+)(?:@([1-9]\d{0,8}))?$/.exec(name.toLowerCase()) ?? [];
  const kind = word === "p" ? "precision" : word;
  const cutoff = digits === undefined ? Number.POSITIVE_INFINITY : Number(digits);
  const isKnown = includes(withoutCutoff, kind) || (includes(withCutoff, kind) && digits !== undefined);
  if (!isKnown)
    throw new UsageError(
      `unknown metric "${name}"; expected ${withCutoff.map((each) => `${each}@K`).join(", ")}, ${withoutCutoff.map((each) => `${each} or ${each}@K`).join(", ")}, with a whole number K of at least 1`,
    );
  return { name: digits === undefined ? kind : `${kind}@${digits}`, kind: kind as Kind, cutoff };
}

function includes(words: readonly string[], word: string): boolean {
  return words.includes(word);
}

/** A ranking seen through the judgements of its query. */
export interface JudgedRanking {
  /** (results) the grade at each rank; undefined where nobody judged. */
  readonly grades: readonly (number | undefined)[];
  /** The grades above 0 of the query, highest first. */
  readonly idealGrades: readonly number[];
  /** How many passages of the qrels are relevant to the query. */
  readonly relevant: number;
  readonly relevantFrom: number;
}

/** Looks the grades of a ranking up. `ids` are best first. */
export function judgeRanking(
  ids: readonly string[],
  grades: ReadonlyMap<string, number>,
  relevantFrom = 1,
): JudgedRanking {
  const known = [...grades.values()];
  return {
    grades: ids.map((id) => grades.get(id)),
    idealGrades: known.filter((grade) => grade > 0).sort((a, b) => b - a),
    relevant: known.filter((grade) => grade >= relevantFrom).length,
    relevantFrom,
  };
}

/** The value of a metric, from 0 to 1; 0 for a query without relevant passages. */
export function rankingMetric({ kind, cutoff }: RankingMetric, ranking: JudgedRanking): number {
  const grades = ranking.grades.slice(0, cutoff);
  const isRelevant = (grade: number | undefined): boolean => (grade ?? -1) >= ranking.relevantFrom;
  const found = (): number => grades.filter(isRelevant).length;
  switch (kind) {
    case "precision":
      return found() / cutoff;
    case "recall":
      return ranking.relevant === 0 ? 0 : found() / ranking.relevant;
    case "success":
      return grades.some(isRelevant) ? 1 : 0;
    case "mrr": {
      const rank = grades.findIndex(isRelevant) + 1;
      return rank === 0 ? 0 : 1 / rank;
    }
    case "map":
      return ranking.relevant === 0 ? 0 : sumOfPrecisions(grades.map(isRelevant)) / ranking.relevant;
    case "ndcg": {
      const ideal = discountedGain(ranking.idealGrades.slice(0, cutoff));
      return ideal === 0 ? 0 : discountedGain(grades) / ideal;
    }
    case "judged":
      return grades.length === 0 ? 0 : grades.filter((grade) => grade !== undefined).length / grades.length;
  }
}

/** The precision at each relevant rank, added up. */
function sumOfPrecisions(relevant: readonly boolean[]): number {
  let found = 0;
  let sum = 0;
  relevant.forEach((isFound, i) => {
    if (isFound) sum += ++found / (i + 1);
  });
  return sum;
}

function discountedGain(grades: readonly (number | undefined)[]): number {
  let sum = 0;
  grades.forEach((grade = 0, i) => {
    if (grade > 0) sum += grade / Math.log2(i + 2);
  });
  return sum;
}
