/** What an evaluation says of a planner and its generator, for people and for programs. Pure. */
import type { Breakdown } from "../evaluation/aggregate.ts";
import type { EvaluationResult } from "../evaluation/result.ts";

/** Metrics of the JSON, means over the questions. */
const shown = [
  "score",
  "directScore",
  "ragScore",
  "gain",
  "ragGain",
  "utility",
  "judgeAgreement",
  "judgeUnreadable",
  "subQueries",
  "forcedCall",
  "generatorTokens",
  "totalTokens",
  "generatorDollars",
] as const;

/** The key `planner` of the JSON of `eval`; empty for results without a planner. */
export function plannerJson({ summary: { overall } }: EvaluationResult): Record<string, unknown> {
  if (overall.score === undefined || overall.subQueries === undefined) return {};
  const means = shown.flatMap((name) => {
    const found = overall[name];
    return found === undefined ? [] : [[name, found.mean]];
  });
  return { planner: { ...Object.fromEntries(means), ci: overall.score.ci } };
}

/** A sentence on scores, of planners also one on cost; empty where nobody judges but exact match. */
export function plannerText({
  summary: { overall },
  contract: { generator, answerJudge },
}: EvaluationResult): string {
  const { score, directScore, ragScore, subQueries, generatorTokens } = overall;
  if (score === undefined) return "";
  const of = (value: { readonly mean: number } | undefined): string => value?.mean.toFixed(3) ?? "-";
  const judged = judgeText(overall);
  if (generator === undefined) return `judged by ${String(answerJudge?.judge)}: ${of(score)}${judged}`;
  return [
    `judged by ${String(generator?.judge)}: ${of(score)} with the planner, ${of(directScore)} by the generator alone, ${of(ragScore)} with RAG${judged}`,
    `a question: ${subQueries?.mean.toFixed(2) ?? "-"} sub-queries, ${generatorTokens?.mean.toFixed(0) ?? "-"} tokens of the generator`,
  ].join("\n");
}

/** How far a model that judges can be relied on; empty where a rule judges. */
function judgeText({ judgeAgreement, judgeUnreadable }: Breakdown): string {
  if (judgeAgreement === undefined) return "";
  const agreed = `; judge and rule agree on ${percent(judgeAgreement)}`;
  return judgeUnreadable === undefined || judgeUnreadable.mean === 0
    ? agreed
    : `${agreed}; the judge said neither yes nor no to ${percent(judgeUnreadable)}, which count as wrong`;
}

function percent({ mean }: { readonly mean: number }): string {
  return `${(100 * mean).toFixed(0)} %`;
}
