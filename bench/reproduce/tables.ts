/** The results of a study as Markdown: a table of variants, a table of claims, and what failed. Pure. */
import type { Estimate } from "../../src/evaluation/bootstrap.ts";
import type { MetricName } from "../../src/evaluation/item.ts";
import type { EvaluationResult } from "../../src/evaluation/result.ts";
import { markdownTable } from "../measure.ts";
import { differenceOf, estimateOf, type Pair, ratioOf } from "./paired.ts";
import type { Claim, Expectation, Study } from "./study.ts";

/** Results by variant and seed; a run that failed is absent. */
export type Results = ReadonlyMap<string, ReadonlyMap<number, EvaluationResult>>;

export interface Failure {
  readonly variant: string;
  readonly seed: number;
  readonly message: string;
}

/** All tables of a study. */
export function studyMarkdown(study: Study, results: Results, failures: readonly Failure[]): string {
  const seeds = Math.max(0, ...[...results.values()].map((runs) => runs.size));
  const claims = study.claims.map((claim) => judge(claim, results));
  const questions = [...results.values()].flatMap((runs) => [...runs.values()])[0]?.items.length ?? 0;
  return [
    `${seeds} ${seeds === 1 ? "seed" : "seeds"}, ${questions} test questions each. In brackets: 95 % intervals by a bootstrap over questions${seeds > 1 ? " and seeds" : " of the one seed"}.`,
    variantTable(study, results),
    claimTable(claims),
    `${claims.length} claims are judged by one interval each, without a correction for their number.`,
    ...(failures.length > 0 ? [failureList(failures)] : []),
  ].join("\n\n");
}

function variantTable({ variants, metrics }: Study, results: Results): string {
  const rows = variants.map(({ name }) => {
    const runs = [...(results.get(name)?.values() ?? [])];
    const failed = runs.reduce((sum, { summary }) => sum + summary.overall.failed, 0);
    const cells = metrics.map((metric) => show(estimateOf(runs, metric), metric));
    return [name, String(runs.length), ...cells, String(failed)];
  });
  return markdownTable(["variant", "seeds", ...metrics, "questions failed"], rows);
}

export interface Judged {
  readonly claim: Claim;
  readonly estimate: Estimate | undefined;
  readonly verdict:
    | "agrees"
    | "disagrees"
    | "not distinguishable"
    | "not contradicted"
    | "not measured"
    | "no claim";
}

/** Judges a claim on the seeds that both variants have. */
export function judge(claim: Claim, results: Results): Judged {
  const pair = pairOf(claim, results);
  const estimate = isRatio(claim)
    ? ratioOf(pair, claim.metric)
    : differenceOf(pair, claim.metric, claim.baselineMetric);
  return { claim, estimate, verdict: estimate ? verdictOf(claim.expect, estimate) : "not measured" };
}

function pairOf({ variant, baseline }: Claim, results: Results): Pair {
  const [own, other] = [results.get(variant), results.get(baseline)];
  const seeds = [...(own?.keys() ?? [])].filter((seed) => other?.has(seed));
  const at = (runs: ReadonlyMap<number, EvaluationResult> | undefined): EvaluationResult[] =>
    seeds.map((seed) => runs?.get(seed) as EvaluationResult);
  return { variant: at(own), baseline: at(other) };
}

function verdictOf(expect: Expectation, { ci: [low, high] }: Estimate): Judged["verdict"] {
  switch (expect.type) {
    case "higher":
      return low > 0 ? "agrees" : high < 0 ? "disagrees" : "not distinguishable";
    case "lower":
      return high < 0 ? "agrees" : low > 0 ? "disagrees" : "not distinguishable";
    case "notLower":
      return low >= 0 ? "agrees" : high < 0 ? "disagrees" : "not contradicted";
    case "notHigher":
      return high <= 0 ? "agrees" : low > 0 ? "disagrees" : "not contradicted";
    case "ratioAtMost":
      return high <= expect.most ? "agrees" : low > expect.most ? "disagrees" : "not distinguishable";
    case "ratioAtLeast":
      return low >= expect.least ? "agrees" : high < expect.least ? "disagrees" : "not distinguishable";
    case "none":
      return "no claim";
  }
}

function isRatio({ expect: { type } }: Claim): boolean {
  return type === "ratioAtMost" || type === "ratioAtLeast";
}

function claimTable(judged: readonly Judged[]): string {
  const rows = judged.map(({ claim, estimate, verdict }) => {
    const { baseline, metric, baselineMetric } = claim;
    const other = baselineMetric === undefined ? baseline : `${baselineMetric} of ${baseline}`;
    const what = `${claim.variant} ${isRatio(claim) ? "over" : "less"} ${other}, ${metric}`;
    return [claim.text, what, estimate ? show(estimate, claim.metric) : "-", verdict];
  });
  return markdownTable(["claim", "measured", "value", "verdict"], rows);
}

function failureList(failures: readonly Failure[]): string {
  const lines = failures.map(({ variant, seed, message }) => `- ${variant}, seed ${seed}: ${message}`);
  return ["Runs that failed:", "", ...lines].join("\n");
}

function show(estimate: Estimate | undefined, metric: MetricName): string {
  if (!estimate) return "-";
  const digits = metric.endsWith("Tokens") || metric === "timeMs" ? 1 : 3;
  const [low, high] = estimate.ci.map((end) => end.toFixed(digits));
  return `${estimate.mean.toFixed(digits)} (${low} to ${high})`;
}

const begin = "<!-- results: written by npm run reproduce -->";
const end = "<!-- end of results -->";

/** The page with new results between its marks; a page without marks gets them at its end. */
export function withResults(page: string, results: string): string {
  const block = `${begin}\n\n${results}\n\n${end}`;
  const [from, to] = [page.indexOf(begin), page.indexOf(end)];
  if (from < 0 || to < from) return `${page.trimEnd()}\n\n${block}\n`;
  return `${page.slice(0, from)}${block}${page.slice(to + end.length)}`;
}
