/** The evaluations between the steps of a reinforcement stage: when one is due, and what it adds to the step's row. */
import type { Recipe } from "../config/recipe.ts";
import type { Stage } from "../config/stage-options.ts";
import type { EvaluationResult } from "../evaluation/result.ts";
import type { MetricRow } from "../reporting/metric-row.ts";

/** True after a step that the recipe wants evaluated and that is not yet; the end of a stage is evaluated elsewhere. */
export function isEvaluationDue(
  { evaluation: { everySteps } }: Recipe,
  stage: Stage,
  row: MetricRow,
): boolean {
  if (stage.type !== "reinforcement" || everySteps === undefined || row.step >= stage.steps) return false;
  return row.step % everySteps === 0 && row["evaluation/n"] === undefined;
}

export function evaluationMetrics({ summary }: EvaluationResult): Partial<MetricRow> {
  const { em, f1, hit1, hit5, searches, answerRetrieved, anyDeficiency, score, totalTokens } =
    summary.overall;
  return {
    "evaluation/n": summary.overall.n,
    ...(em && { "evaluation/em": em.mean, "evaluation/emLow": em.ci[0], "evaluation/emHigh": em.ci[1] }),
    ...(f1 && { "evaluation/f1": f1.mean }),
    ...(hit1 && { "evaluation/hit1": hit1.mean }),
    ...(hit5 && { "evaluation/hit5": hit5.mean }),
    ...(score && { "evaluation/score": score.mean }),
    ...(totalTokens && { "evaluation/totalTokens": totalTokens.mean }),
    ...(searches && { "evaluation/searches": searches.mean }),
    ...(answerRetrieved && { "evaluation/answerRetrieved": answerRetrieved.mean }),
    ...(anyDeficiency && { "evaluation/anyDeficiency": anyDeficiency.mean }),
  };
}
