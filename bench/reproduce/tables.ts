/** The results of a study as Markdown: a table of variants, a table of claims, and what failed. Pure. */
import type { Estimate } from "../../src/evaluation/bootstrap.ts";
import type { MetricName } from "../../src/evaluation/item.ts";
import { paretoFront } from "../../src/evaluation/pareto.ts";
import type { EvaluationResult } from "../../src/evaluation/result.ts";
import { markdownTable } from "../measure.ts";
import { differenceOf, estimateOf, gapShareOf, type Pair, ratioOf } from "./paired.ts";
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
    ...frontText(study, results),
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

function frontText({ front }: Study, results: Results): string[] {
  if (!front) return [];
  const points = front.variants.flatMap((name) => {
    const runs = [...(results.get(name)?.values() ?? [])];
    const [utility, cost] = [front.utility, front.cost].map((metric) => estimateOf(runs, metric)?.mean);
    return utility === undefined || cost === undefined ? [] : [{ name, utility, cost }];
  });
  const best = paretoFront(points).map(
    ({ name, utility, cost }) => `${name} (${utility.toFixed(3)} for ${cost.toFixed(3)})`,
  );
  return [
    `Pareto front of ${front.utility} against ${front.cost}, by means: ${best.length} of ${points.length} points: ${best.join(", ")}.`,
  ];
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

/** Judges a claim on the seeds that all its variants have. */
export function judge(claim: Claim, results: Results): Judged {
  const estimate = measured(claim, results);
  return { claim, estimate, verdict: estimate ? verdictOf(claim.expect, estimate) : "not measured" };
}

function measured(claim: Claim, results: Results): Estimate | undefined {
  const { variant, baseline, metric, baselineMetric, expect } = claim;
  const names = [variant, baseline, ...(expect.type === "gapShareAtLeast" ? [expect.ceiling] : [])];
  const [own = [], other = [], ceiling = []] = runsOf(names, results);
  const pair: Pair = { variant: own, baseline: other };
  if (expect.type === "gapShareAtLeast") return gapShareOf({ ...pair, ceiling }, metric);
  return isRatio(claim) ? ratioOf(pair, metric) : differenceOf(pair, metric, baselineMetric);
}

/** The runs of the variants with the seeds that all of them have. */
function runsOf(names: readonly string[], results: Results): EvaluationResult[][] {
  const all = names.map((name) => results.get(name));
  const seeds = [...(all[0]?.keys() ?? [])].filter((seed) => all.every((runs) => runs?.has(seed)));
  return all.map((runs) => seeds.map((seed) => runs?.get(seed) as EvaluationResult));
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
    case "gapShareAtLeast":
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
    const what = `${claim.variant} ${isRatio(claim) ? "over" : "less"} ${other}${overGap(claim)}, ${metric}`;
    return [claim.text, what, estimate ? show(estimate, claim.metric) : "-", verdict];
  });
  return markdownTable(["claim", "measured", "value", "verdict"], rows);
}

function overGap({ expect, baseline }: Claim): string {
  return expect.type === "gapShareAtLeast" ? `, over ${expect.ceiling} less ${baseline}` : "";
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
