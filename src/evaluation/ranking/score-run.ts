/**
 * A run scored against judgements: every metric for every query, and means with 95 % bootstrap intervals.
 * Two ways to average, as trec_eval has them: over all queries of the qrels, where one without results counts 0
 * (`judged`, its option -c), or only over those that the run has results for (`retrieved`, its default), which
 * flatters a retriever that gives up on hard queries. Queries that nobody judged are left out.
 */
import { UsageError } from "../../errors.ts";
import { bootstrapMeans, type Estimate } from "../bootstrap.ts";
import { type Qrels, type Run, type RunEntry, rankedIds } from "./ranking.ts";
import { judgeRanking, parseMetric, rankingMetric } from "./ranking-metrics.ts";

export type Averaging = "judged" | "retrieved";

export interface QueryScore {
  readonly id: string;
  /** By the name of the metric, from 0 to 1. */
  readonly values: Readonly<Record<string, number>>;
}

export interface RunScore {
  readonly queries: readonly QueryScore[];
  /** By the name of the metric, in the order asked for. */
  readonly means: Readonly<Record<string, Estimate>>;
  /** Queries with a judgement (or a question) that the run has no result for. */
  readonly withoutResults: number;
  /** Queries of the run that were left out because nothing is known about them. */
  readonly withoutJudgement: number;
  /** Queries of the qrels to which nothing is relevant; they count 0, whatever is returned. */
  readonly withoutRelevant: number;
}

export interface ScoreOptions {
  /** Such as `ndcg@10`; see `parseMetric`. */
  readonly metrics: readonly string[];
  /** Of the bootstrap. */
  readonly seed: number;
  /** Default `judged`. */
  readonly averaging?: Averaging;
  /** Least grade that is relevant; default 1. nDCG counts every grade above 0. */
  readonly relevantFrom?: number;
}

/**
 * Scores a run. Throws `UsageError` for a metric that is not known, and when the run and the qrels have no query in
 * common: then their ids do not belong together, and zeros would hide it.
 */
export function scoreRun(run: Run, qrels: Qrels, options: ScoreOptions): RunScore {
  const metrics = options.metrics.map(parseMetric);
  requireCommon(run, [...qrels.keys()], "the qrels");
  const averaged = averagedQueries(run, [...qrels.keys()], options.averaging);
  const { relevantFrom = 1 } = options;
  const queries = averaged.map((id) => {
    const grades = qrels.get(id) ?? new Map<string, number>();
    const ranking = judgeRanking(rankedIds(run.get(id) ?? []), grades, relevantFrom);
    return {
      id,
      values: Object.fromEntries(metrics.map((metric) => [metric.name, rankingMetric(metric, ranking)])),
    };
  });
  const isWithoutRelevant = (id: string): boolean =>
    ![...(qrels.get(id)?.values() ?? [])].some((grade) => grade >= relevantFrom);
  return {
    queries,
    means: meansOf(
      queries,
      metrics.map(({ name }) => name),
      options.seed,
    ),
    withoutResults: [...qrels.keys()].filter((id) => !hasResults(run.get(id))).length,
    withoutJudgement: [...run.keys()].filter((id) => !qrels.has(id)).length,
    withoutRelevant: averaged.filter(isWithoutRelevant).length,
  };
}

/** The query ids that a mean is taken over. */
export function averagedQueries(
  run: Run,
  ids: readonly string[],
  averaging: Averaging = "judged",
): readonly string[] {
  return averaging === "judged" ? ids : ids.filter((id) => hasResults(run.get(id)));
}

export function hasResults(entries: readonly RunEntry[] | undefined): boolean {
  return entries !== undefined && entries.length > 0;
}

/** Throws `UsageError` when a run with queries has none of `ids`, which are those of `owner`. */
export function requireCommon(run: Run, ids: readonly string[], owner: string): void {
  const [stranger] = run.keys();
  if (stranger === undefined || ids.some((id) => run.has(id))) return;
  const example = ids[0] === undefined ? "none" : JSON.stringify(ids[0]);
  throw new UsageError(
    `the run and ${owner} have no query in common: ids such as ${JSON.stringify(stranger)} in the run and ${example} in ${owner}; use the files of one data set`,
  );
}

/** The mean of each metric with its interval; no entry where there are no queries. */
export function meansOf(
  queries: readonly QueryScore[],
  metrics: readonly string[],
  seed: number,
): Record<string, Estimate> {
  const columns = metrics.map((name) => queries.map(({ values }) => values[name] as number));
  const estimates = bootstrapMeans(columns, { seed });
  return Object.fromEntries(
    metrics.flatMap((name, i) => {
      const estimate = estimates[i];
      return estimate === undefined ? [] : [[name, estimate] as const];
    }),
  );
}
