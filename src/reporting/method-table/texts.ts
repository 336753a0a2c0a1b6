/** The table of methods as Markdown and as CSV. Pure. */
import type { Breakdown } from "../../evaluation/aggregate.ts";
import type { MetricName } from "../../evaluation/item.ts";
import type { MethodTable, TableRow } from "../../evaluation/method-table.ts";
import { markdownTable, markdownText } from "../markdown.ts";

/** What a row says beside exact match. */
export const costColumns = [
  "searches",
  "policyTokens",
  "timeMs",
  "dollars",
] as const satisfies readonly MetricName[];
const costNames: Readonly<Record<(typeof costColumns)[number], string>> = {
  searches: "searches",
  policyTokens: "tokens written",
  timeMs: "seconds",
  dollars: "dollars",
};

/** A sign behind a number that differs from the reference after correction. */
const signs = { better: " ▲", worse: " ▼", "not distinguishable": " ≈" } as const;

/** A page of Markdown: the table, what was not measured and why, and what every number depends on. */
export function methodMarkdown(table: MethodTable): string {
  const header = [
    "method",
    ...table.sets.map(markdownText),
    "macro",
    ...costColumns.map((name) => costNames[name]),
  ];
  const rows = table.rows.map((row) => [
    markdownText(row.name),
    ...table.sets.map((set) => cell(row, set)),
    ...costs(row),
  ]);
  return [
    "# Methods\n",
    markdownTable(header, rows),
    "",
    legend(table),
    "",
    ...table.rows.map((row) => `- ${markdownText(account(row))}`),
    "",
  ].join("\n");
}

function cell(row: TableRow, set: string): string {
  const em = row.bySet[set]?.em;
  if (em === undefined) return "–";
  const difference = row.differences[set];
  const sign = difference === undefined ? "" : signs[difference.verdict];
  return `${em.mean.toFixed(3)} [${em.ci[0].toFixed(3)}, ${em.ci[1].toFixed(3)}] n=${em.n}${sign}`;
}

function costs({ result }: TableRow): string[] {
  if (result === undefined) return ["–", ...costColumns.map(() => "–")];
  const { macroEm, overall } = result.summary;
  return [
    macroEm === undefined ? "–" : macroEm.toFixed(3),
    ...costColumns.map((name) => costText(overall, name)),
  ];
}

function costText(overall: Breakdown, name: (typeof costColumns)[number]): string {
  const mean = overall[name]?.mean;
  if (mean === undefined) return "–";
  if (name === "timeMs") return (mean / 1000).toFixed(2);
  return name === "dollars" ? mean.toPrecision(3) : mean.toFixed(name === "searches" ? 2 : 0);
}

function legend({ reference }: MethodTable): string {
  if (reference === undefined) return "No method was measured.";
  return `Exact match with 95 % bootstrap interval. ▲ better, ▼ worse, ≈ not distinguishable from ${markdownText(reference)}: paired randomisation test over the same questions, Holm's correction over all cells, 0.05. Costs are means a question.`;
}

/** What became of a method, in a sentence: every one that was asked for is accounted for. */
export function account({ name, result, failure, unequal }: TableRow): string {
  if (result === undefined) return `${name}: not measured: ${failure ?? "unknown"}`;
  const { contract, summary } = result;
  const { temperature, topP, topK } = contract.sampling;
  const decoding = temperature === 0 ? "greedy" : `temperature ${temperature}, top-p ${topP}, top-k ${topK}`;
  const warning =
    unequal.length === 0 ? "" : `; not comparable with the reference: ${unequal.join(", ")} differ`;
  return `${name}: ${summary.overall.n} questions of ${contract.split}, ${summary.overall.failed} failed; ${decoding}; k ${contract.k}; model ${contract.model.model}${warning}`;
}

/** One line for each method and set, with a header (RFC 4180). */
export function methodCsv({ sets, rows }: MethodTable): string {
  const header = [
    "method",
    "set",
    "n",
    "failed",
    "em",
    "em_low",
    "em_high",
    "f1",
    "searches",
    "policy_tokens",
    "time_ms",
    "dollars",
    "difference",
    "p",
    "adjusted_p",
    "verdict",
    "split",
    "temperature",
    "model",
    "failure",
  ];
  const lines = rows.flatMap((row) => {
    if (row.result === undefined)
      return [[row.name, ...Array<string>(header.length - 2).fill(""), row.failure ?? ""]];
    return sets.filter((set) => row.bySet[set] !== undefined).map((set) => csvRow(row, set));
  });
  return `${[header, ...lines].map((cells) => cells.map(csvCell).join(",")).join("\n")}\n`;
}

function csvRow(row: TableRow, set: string): (string | number | undefined)[] {
  const breakdown = row.bySet[set] as Breakdown;
  const { em, f1, searches, policyTokens, timeMs, dollars } = breakdown;
  const difference = row.differences[set];
  const contract = row.result?.contract;
  return [
    row.name,
    set,
    breakdown.n,
    breakdown.failed,
    em?.mean,
    em?.ci[0],
    em?.ci[1],
    f1?.mean,
    searches?.mean,
    policyTokens?.mean,
    timeMs?.mean,
    dollars?.mean,
    difference?.mean,
    difference?.p,
    difference?.adjustedP,
    difference?.verdict,
    contract?.split,
    contract?.sampling.temperature,
    contract?.model.model,
    "",
  ];
}

function csvCell(value: string | number | undefined): string {
  const text = value === undefined ? "" : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
