/** Results as tables for people and as flat JSON for programs. Pure. */
import type { Breakdown } from "../evaluation/aggregate.ts";
import type { Estimate } from "../evaluation/bootstrap.ts";
import type { EvaluationCost, EvaluationResult } from "../evaluation/result.ts";

/** The head of an evaluation for programs; numbers are null where nothing was scored. */
export function resultJson({
  contract,
  summary: { overall, macroEm },
  cost,
}: EvaluationResult): Record<string, unknown> {
  return {
    n: overall.n,
    failed: overall.failed,
    em: overall.em?.mean ?? null,
    ci: overall.em?.ci ?? null,
    f1: overall.f1?.mean ?? null,
    coverEm: overall.coverEm?.mean ?? null,
    macroEm: macroEm ?? null,
    wellFormed: overall.wellFormed?.mean ?? null,
    score: overall.score?.mean ?? null,
    searches: overall.searches?.mean ?? null,
    anyDeficiency: overall.anyDeficiency?.mean ?? null,
    cost: cost ?? null,
    contract,
  };
}

/** Why the first of the failed questions failed, for people; undefined where none did. */
export function failureText({ items }: EvaluationResult): string | undefined {
  const failed = items.filter((item) => item.failed);
  const [first] = failed;
  if (first === undefined) return undefined;
  return `${failed.length} of ${items.length} questions failed and count in no score; the first, ${first.dataset}/${first.id}: ${first.failure}`;
}

/** All questions in one row, then by data set (where there are several) and by hops. */
export function resultTable({ summary }: EvaluationResult): string {
  const { overall, byDataset, byHops } = summary;
  const datasets = Object.entries(byDataset);
  const rows: (readonly [string, Breakdown])[] = [
    ["all", overall],
    ...(datasets.length > 1 ? datasets : []),
    ...Object.entries(byHops).map(([hops, row]) => [hopsLabel(hops), row] as const),
  ];
  return alignColumns([
    [
      "questions",
      "n",
      "exact match",
      "95 % interval",
      "F1",
      "cover EM",
      "gold found",
      "well formed",
      "searches",
      "tokens",
      "failed",
    ],
    ...rows.map(([name, row]) => [name, ...resultCells(row)]),
  ]);
}

function resultCells({
  n,
  failed,
  em,
  f1,
  coverEm,
  retrievalRecall,
  wellFormed,
  searches,
  policyTokens,
}: Breakdown): readonly string[] {
  return [
    String(n),
    share(em),
    em === undefined ? "-" : interval(em.ci),
    share(f1),
    share(coverEm),
    share(retrievalRecall),
    share(wellFormed),
    searches === undefined ? "-" : searches.mean.toFixed(2),
    policyTokens === undefined ? "-" : policyTokens.mean.toFixed(0),
    String(failed),
  ];
}

/** What every number of a result is of: split, questions, decoding. */
export function askedText({ contract: { split, n, sampling } }: EvaluationResult): string {
  const { temperature, topP, topK } = sampling;
  const decoding = temperature === 0 ? "greedy" : `temperature ${temperature}, top-p ${topP}, top-k ${topK}`;
  return `${n} questions of ${split}, ${decoding}`;
}

/** How searches were used, in one line; empty for older results. */
export function searchUseText({
  summary: { overall, recallByHop = [] },
  selective,
}: EvaluationResult): string {
  const { redundantSearches, searchesAfterEvidence, answerSupported, abstained } = overall;
  const { citationPrecision, citationRecall } = overall;
  if (redundantSearches === undefined || searchesAfterEvidence === undefined) return "";
  const hops = recallByHop.map(({ mean }) => mean.toFixed(3)).join(", ");
  const area = selective?.area;
  return [
    `of the searches of a question ${redundantSearches.mean.toFixed(2)} redundant, ${searchesAfterEvidence.mean.toFixed(2)} after the evidence was in hand`,
    ...(answerSupported === undefined ? [] : [`answers supported by a passage ${share(answerSupported)}`]),
    ...(hops === "" ? [] : [`recall of the gold passages in order ${hops}`]),
    ...(citationRecall === undefined
      ? []
      : [`citations: precision ${share(citationPrecision)}, recall ${share(citationRecall)}`]),
    ...(abstained === undefined || abstained.mean === 0 ? [] : [`abstained ${share(abstained)}`]),
    ...(area === undefined ? [] : [`area under risk-coverage ${area.toFixed(3)}`]),
  ].join("; ");
}

/** What an evaluation used in all, in one line, and where several parts worked a line for each. */
export function costText({
  calls,
  promptTokens,
  cachedTokens,
  completionTokens,
  dollars,
  pricing,
  parts = {},
}: EvaluationCost): string {
  const total = `${calls} calls, ${promptTokens} prompt tokens (${cachedTokens} cached), ${completionTokens} completion tokens, ${moneyText(pricing === "unpriced" ? undefined : dollars)}${pricing === "partly" ? " for what has a price" : ""}`;
  const lines = Object.entries(parts).map(([name, part]) => {
    const asked =
      name === "retrieval"
        ? `${part.calls} queries`
        : `${part.calls} calls, ${part.promptTokens} + ${part.completionTokens} tokens`;
    // Episodes are played at once: what they waited in all would be many times what the clock showed.
    const waited = (part.seconds / Math.max(1, part.calls)).toFixed(3);
    return `  ${name.padEnd(9)}  ${asked}, ${waited} s waited for each, ${moneyText(part.dollars)}`;
  });
  return lines.length < 2 ? total : [total, ...lines].join("\n");
}

function moneyText(dollars: number | undefined): string {
  return dollars === undefined ? "$0, unpriced" : `$${Number(dollars.toFixed(6))}`;
}

/** Exact match and searches of two results, over all questions and by hops. */
export function beforeAfterTable(before: EvaluationResult, after: EvaluationResult): string {
  const rows: (readonly [string, Breakdown | undefined, Breakdown | undefined])[] = [
    ["all", before.summary.overall, after.summary.overall],
    ...Object.keys(after.summary.byHops).map(
      (hops) => [hopsLabel(hops), before.summary.byHops[hops], after.summary.byHops[hops]] as const,
    ),
  ];
  return alignColumns([
    ["questions", "n", "exact match before", "after", "searches before", "after"],
    ...rows.map(([name, a, b]) => [
      name,
      String(b?.n ?? 0),
      withInterval(a?.em),
      withInterval(b?.em),
      a?.searches?.mean.toFixed(2) ?? "-",
      b?.searches?.mean.toFixed(2) ?? "-",
    ]),
  ]);
}

function hopsLabel(hops: string): string {
  return hops === "1" ? "1 hop" : `${hops} hops`;
}

function share(estimate: Estimate | undefined): string {
  return estimate === undefined ? "-" : estimate.mean.toFixed(3);
}

function withInterval(estimate: Estimate | undefined): string {
  return estimate === undefined ? "-" : `${estimate.mean.toFixed(3)} [${interval(estimate.ci)}]`;
}

function interval([low, high]: readonly [number, number]): string {
  return `${low.toFixed(3)}-${high.toFixed(3)}`;
}

/** Rows of cells as lines; the first column is left-aligned, numbers are right-aligned. */
export function alignColumns(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  return rows
    .map((row) =>
      row
        .map((text, column) =>
          column === 0 ? text.padEnd(widths[0] ?? 0) : text.padStart(widths[column] ?? 0),
        )
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}
