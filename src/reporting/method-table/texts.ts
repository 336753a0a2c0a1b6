/** The table of methods as Markdown and as CSV. Pure. */
import type { Breakdown } from "../../evaluation/aggregate.ts";
import type { MethodTable, TableRow } from "../../evaluation/method-table.ts";
import { markdownTable, markdownText } from "../markdown.ts";
import { allColumns, type Column, metricLabel, shownColumns, showScore } from "./columns.ts";
import { selectiveMarkdown } from "./selective.ts";

/** A sign behind a number that differs from the reference after correction. */
export const signs = { better: "▲", worse: "▼", "not distinguishable": "≈" } as const;

/** A page of Markdown: the table, what was not measured and why, and what every number depends on. */
export function methodMarkdown(table: MethodTable): string {
  const { scores, costs } = shownColumns(table);
  const measured = table.rows.filter(({ result }) => result !== undefined);
  return [
    "# Methods",
    markdownTable(
      ["method", ...table.sets.map(markdownText), ...(table.sets.length > 1 ? ["macro"] : [])],
      table.rows.map((row) => [markdownText(row.name), ...scoreCells(table, row)]),
    ),
    legend({
      ...table,
      reference: table.reference && markdownText(table.reference),
      ...(table.missingReference && { missingReference: markdownText(table.missingReference) }),
    }),
    ...(measured.length === 0
      ? []
      : [
          "## Other scores, all questions",
          columnTable(measured, scores),
          "## What a question took, mean",
          columnTable(measured, costs),
          costLegend,
        ]),
    ...selectiveMarkdown(table),
    "## Every method",
    table.rows.map((row) => `- ${markdownText(account(row))}`).join("\n"),
    "",
  ].join("\n\n");
}

function columnTable(rows: readonly TableRow[], columns: readonly Column[]): string {
  return markdownTable(
    ["method", ...columns.map(({ label }) => label)],
    rows.map((row) => [markdownText(row.name), ...columns.map((column) => columnCell(row, column))]),
  );
}

/** The mean of a column for a method, or a dash. */
export function columnCell({ result }: TableRow, { metric, show }: Column): string {
  const mean = result?.summary.overall[metric]?.mean;
  return mean === undefined ? "–" : show(mean);
}

function scoreCells({ sets, metric }: MethodTable, row: TableRow): string[] {
  const cells = sets.map((set) => {
    const estimate = breakdownOf(row, set)?.[metric];
    if (estimate === undefined) return "–";
    const { mean, ci, n } = estimate;
    const verdict = row.differences[set]?.verdict;
    const sign = verdict === undefined ? "" : ` ${signs[verdict]}`;
    return `${showScore(metric, mean)} [${showScore(metric, ci[0])}, ${showScore(metric, ci[1])}] n=${n}${sign}`;
  });
  return sets.length > 1 ? [...cells, macroCell(row, metric)] : cells;
}

/** The mean over the sets, or a dash. */
export function macroCell({ macro }: TableRow, metric: MethodTable["metric"]): string {
  return macro === undefined ? "–" : showScore(metric, macro);
}

/** The numbers of a method on a set. */
export function breakdownOf(row: TableRow, set: string): Breakdown | undefined {
  return row.bySet[set];
}

/** What the numbers of the first table are. */
export function legend({ metric, reference, missingReference }: MethodTable): string {
  const score = `${capital(metricLabel(metric))} with 95 % bootstrap interval.`;
  if (missingReference !== undefined)
    return `${score} Nothing is compared: ${missingReference} could not be measured.`;
  if (reference === undefined) return "No method was measured.";
  return `${score} ▲ better, ▼ worse, ≈ not distinguishable from ${reference}: paired randomisation test over the same questions (with several seeds a bootstrap over seeds and questions), Holm's correction over all cells, 0.05.`;
}

/** What the columns of cost hold. */
export const costLegend =
  "Tokens in all: written by the agent, read and written by a generator and a ranker. Seconds of questions that were asked together share the machine. Dollars: models and searches; judging is no part of answering and stands apart.";

function capital(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}`;
}

/** What became of a method, in a sentence: every one that was asked for is accounted for. */
export function account({ name, result, seeds, failure, unequal }: TableRow): string {
  if (result === undefined) return `${name}: not measured: ${failure ?? "unknown"}`;
  const { contract, summary } = result;
  const { temperature, topP, topK } = contract.sampling;
  const decoding = temperature === 0 ? "greedy" : `temperature ${temperature}, top-p ${topP}, top-k ${topK}`;
  const warning =
    unequal.length === 0 ? "" : `; not comparable with the reference: ${unequal.join(", ")} differ`;
  const questions = `${summary.overall.n} question${summary.overall.n === 1 ? "" : "s"}`;
  const several = seeds === undefined ? "" : `means of ${seeds.length} seeds, `;
  return `${name}: ${several}${questions} of ${contract.split}, ${summary.overall.failed} failed; ${decoding}; k ${contract.k}; model ${contract.model.model}${warning}`;
}

/** One line for each method and set, with a header (RFC 4180). */
export function methodCsv({ sets, rows, metric }: MethodTable): string {
  const header = [
    ...["method", "set", "n", "failed", "metric", "mean", "low", "high"],
    ...["difference", "p", "adjusted_p", "verdict"],
    ...allColumns.map((column) => snake(column.metric)),
    ...["split", "temperature", "model", "failure"],
  ];
  const lines = rows.flatMap((row) => {
    if (row.result === undefined)
      return [[row.name, ...Array<string>(header.length - 2).fill(""), row.failure ?? ""]];
    return sets.filter((set) => row.bySet[set] !== undefined).map((set) => csvRow(row, set, metric));
  });
  return `${[header, ...lines].map((cells) => cells.map(csvCell).join(",")).join("\n")}\n`;
}

function csvRow(row: TableRow, set: string, metric: MethodTable["metric"]): (string | number | undefined)[] {
  const breakdown = row.bySet[set] as Breakdown;
  const estimate = breakdown[metric];
  const difference = row.differences[set];
  const contract = row.result?.contract;
  return [
    ...[row.name, set, breakdown.n, breakdown.failed],
    ...[metric, estimate?.mean, estimate?.ci[0], estimate?.ci[1]],
    ...[difference?.mean, difference?.p, difference?.adjustedP, difference?.verdict],
    ...allColumns.map((column) => breakdown[column.metric]?.mean),
    ...[contract?.split, contract?.sampling.temperature, contract?.model.model, ""],
  ];
}

/** `timeMs` as `time_ms`. */
function snake(metric: string): string {
  return metric.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

function csvCell(value: string | number | undefined): string {
  const text = value === undefined ? "" : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
