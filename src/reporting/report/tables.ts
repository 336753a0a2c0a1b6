/** The table of an evaluation before and after: every score with its interval, and the paired difference. */
import type { Breakdown } from "../../evaluation/aggregate.ts";
import type { Differences } from "../../evaluation/compare-results.ts";
import type { MetricName } from "../../evaluation/item.ts";
import { type BeforeAfter, formatP } from "./before-after.ts";
import { line, pixel } from "./chart-frame.ts";
import { type Child, element, fragment, type Markup } from "./markup.ts";
import { formatCount, formatShare, formatSigned, linearScale } from "./scale.ts";

type Estimate = NonNullable<Breakdown[MetricName]>;

interface Row {
  readonly label: string;
  readonly metric: MetricName;
  readonly before: Breakdown | undefined;
  readonly after: Breakdown;
  readonly differences: Differences | undefined;
}

interface Measure {
  readonly metric: MetricName;
  readonly label: string;
  /** Shares have two decimals and a picture; others are counts. */
  readonly isShare: boolean;
}

const measures: readonly Measure[] = [
  { metric: "em", label: "Exact match", isShare: true },
  { metric: "coverEm", label: "Cover exact match", isShare: true },
  { metric: "f1", label: "Token F1", isShare: true },
  { metric: "retrievalRecall", label: "Gold passages found", isShare: true },
  { metric: "answerRetrieved", label: "Answer retrieved", isShare: true },
  { metric: "searches", label: "Searches a question", isShare: false },
  { metric: "policyTokens", label: "Tokens by the policy", isShare: false },
  { metric: "contextTokens", label: "Tokens in all", isShare: false },
  { metric: "timeMs", label: "Time, ms", isShare: false },
];

/** Who judges beside exact match, and what else an answer took; a row is there where the results have it. */
const judgeMeasures: readonly Measure[] = [
  { metric: "score", label: "Judge", isShare: true },
  { metric: "judgeAgreement", label: "Judge and rule agree", isShare: true },
  { metric: "judgeUnreadable", label: "Judgement unreadable", isShare: true },
  { metric: "ragScore", label: "Generator with RAG", isShare: true },
  { metric: "directScore", label: "Generator alone", isShare: true },
];
const useMeasures: readonly Measure[] = [
  { metric: "redundantSearches", label: "Redundant searches", isShare: false },
  { metric: "searchesAfterEvidence", label: "Searches after the evidence", isShare: false },
  { metric: "answerSupported", label: "Answer supported by a passage", isShare: true },
  { metric: "citationPrecision", label: "Citation precision", isShare: true },
  { metric: "citationRecall", label: "Citation recall", isShare: true },
];
const costMeasures: readonly Measure[] = [
  { metric: "retrievalMs", label: "Waiting for the retriever, ms", isShare: false },
  { metric: "rankerMs", label: "Waiting for the ranker, ms", isShare: false },
  { metric: "generatorTokens", label: "Tokens of the generator", isShare: false },
  { metric: "rankerTokens", label: "Tokens of the ranker", isShare: false },
  { metric: "totalTokens", label: "Tokens with the other models", isShare: false },
  { metric: "totalDollars", label: "Dollars, without judging", isShare: false },
  { metric: "judgeTokens", label: "Tokens of judging", isShare: false },
  { metric: "judgeDollars", label: "Dollars of judging", isShare: false },
];

/** An agent alone has no more tokens than those it wrote, which stand above. */
function costsOf({ generatorTokens, rankerTokens }: Breakdown): readonly Measure[] {
  const isAlone = generatorTokens === undefined && rankerTokens === undefined;
  return costMeasures.filter(({ metric }) => !(isAlone && metric === "totalTokens"));
}

/** Deficiencies of searching by both definitions of DeSA; less is better. */
const paperDeficiencies: readonly Measure[] = [
  { metric: "malformedAction", label: "Malformed action", isShare: true },
  { metric: "duplicateQuery", label: "Query asked twice", isShare: true },
  { metric: "noSearch", label: "No search", isShare: true },
  { metric: "anyDeficiency", label: "Any of these", isShare: true },
];
const releasedDeficiencies: readonly Measure[] = [
  { metric: "releasedInvalidQuery", label: "Invalid query", isShare: true },
  { metric: "releasedDuplicateQuery", label: "Duplicate query", isShare: true },
  { metric: "releasedNoSearch", label: "No search, no answer found", isShare: true },
  { metric: "releasedNoRewriting", label: "Question as query, no answer found", isShare: true },
  { metric: "releasedAnyDeficiency", label: "Any of the four", isShare: true },
];
const isShare = (metric: MetricName): boolean =>
  [...measures, ...judgeMeasures, ...useMeasures, ...paperDeficiencies, ...releasedDeficiencies].some(
    (measure) => measure.metric === metric && measure.isShare,
  );

type Group = readonly [title: string, rows: readonly Row[]];

/** What was gained first, and folded below it how searches were used; without a `before` there is one column. */
export function evaluationTable(content: BeforeAfter): Markup {
  const { before, after, comparison } = content;
  const [first, second] = [before?.result.summary, after.result.summary];
  const overall = ({ metric, label }: Measure): Row => ({
    label,
    metric,
    before: first?.overall,
    after: second.overall,
    differences: comparison?.overall,
  });
  const broken = (by: "byHops" | "byDataset", metric: MetricName, name: (key: string) => string): Row[] =>
    Object.entries(second[by]).map(([key, breakdown]) => ({
      label: name(key),
      metric,
      before: first?.[by][key],
      after: breakdown,
      differences: comparison?.[by][key],
    }));
  const hops = (key: string): string => `${key} ${key === "1" ? "hop" : "hops"}`;
  const groups: readonly Group[] = [
    ["Judged", second.overall.score ? judgeMeasures.map(overall) : []],
    ["Exact match by hops", broken("byHops", "em", hops)],
    ["Searches by hops", broken("byHops", "searches", hops)],
    [
      "Exact match by data set",
      Object.keys(second.byDataset).length > 1 ? broken("byDataset", "em", (key) => key) : [],
    ],
  ];
  const { redundantSearches, retrievalMs, anyDeficiency } = second.overall;
  const details: readonly Group[] = [
    ["Use of searches", redundantSearches ? useMeasures.map(overall) : []],
    ["What an answer took", retrievalMs ? costsOf(second.overall).map(overall) : []],
    ["Deficiencies, as the paper of DeSA defines them", anyDeficiency ? paperDeficiencies.map(overall) : []],
    [
      "Deficiencies, as DeSA's released code counts them",
      anyDeficiency ? releasedDeficiencies.map(overall) : [],
    ],
  ];
  const isPair = before !== undefined;
  return fragment(
    renderTable([["", measures.map(overall)], ...groups], isPair),
    details.some(([, rows]) => rows.length > 0) &&
      element(
        "details",
        { class: "source" },
        element("summary", {}, "How searches were used, and what an answer took"),
        renderTable(details, isPair),
      ),
  );
}

function renderTable(groups: readonly Group[], isPair: boolean): Markup {
  return element(
    "div",
    { class: "scroll" },
    element(
      "table",
      {},
      element("thead", {}, renderHead(isPair)),
      groups.map(([title, rows]) => rows.length > 0 && renderGroup(title, rows, isPair)),
    ),
  );
}

function renderHead(isPair: boolean): Markup {
  const number = { class: "number", scope: "col" };
  const columns = isPair ? ["Before", "After", "Difference"] : ["Score"];
  return element(
    "tr",
    {},
    element("th", { scope: "col" }, "Measure"),
    element("th", { class: "number n", scope: "col" }, "n"),
    columns.map((column) => element("th", number, column)),
    element("th", { class: "range", scope: "col" }, isPair ? "0 to 1, ○ before ● after" : "0 to 1"),
  );
}

function renderGroup(title: string, rows: readonly Row[], isPair: boolean): Markup {
  return element(
    "tbody",
    {},
    title !== "" &&
      element("tr", { class: "group" }, element("th", { colspan: isPair ? 6 : 4, scope: "rowgroup" }, title)),
    rows.map((row) => renderRow(row, isPair)),
  );
}

function renderRow(row: Row, isPair: boolean): Child {
  const after = row.after[row.metric];
  if (!after) return undefined;
  const before = row.before?.[row.metric];
  return element(
    "tr",
    {},
    element("th", { scope: "row" }, row.label),
    element("td", { class: "number n" }, after.n),
    isPair && element("td", { class: "number" }, renderEstimate(before, row.metric)),
    element("td", { class: "number" }, renderEstimate(after, row.metric)),
    isPair && element("td", { class: "number" }, renderDifference(row)),
    element("td", { class: "range" }, isShare(row.metric) && renderRange(before, after)),
  );
}

function renderEstimate(estimate: Estimate | undefined, metric: MetricName): Child {
  if (!estimate) return "–";
  const format = isShare(metric) ? formatShare : formatCount;
  const [low, high] = estimate.ci;
  return fragment(
    format(estimate.mean),
    " ",
    element("span", { class: "interval" }, `(${format(low)}–${format(high)})`),
  );
}

function renderDifference({ differences, metric }: Row): Child {
  const difference = differences?.[metric];
  if (!difference) return "–";
  const { mean, ci, p, verdict } = difference;
  const format = (value: number): string => formatSigned(value, isShare(metric) ? formatShare : formatCount);
  const tones = { better: "good", worse: "bad", "not distinguishable": "muted" } as const;
  // Costs are not coloured: more searches may be just what was wanted.
  const tone = isShare(metric) ? tones[verdict] : undefined;
  const note = verdict === "not distinguishable" ? "not distinguishable" : formatP(p);
  return fragment(
    element("strong", { class: tone }, format(mean)),
    " ",
    element("span", { class: "interval wide" }, `(${format(ci[0])} to ${format(ci[1])})`),
    " ",
    element("span", { class: "interval wide note" }, note),
  );
}

/** Both estimates with their intervals on one line from 0 to 1. */
function renderRange(before: Estimate | undefined, after: Estimate): Markup {
  const [width, height] = [240, 18];
  const x = linearScale([0, 1], [8, width - 8]);
  const mark = (estimate: Estimate, name: string, y: number): Markup[] => [
    line(name, x(estimate.ci[0]), y, x(estimate.ci[1]), y),
    element("circle", { class: name, cx: pixel(x(estimate.mean)), cy: y, r: 4.5 }),
  ];
  return element(
    "svg",
    { viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" },
    line("link", x(0), height / 2, x(1), height / 2),
    before && mark(before, "before", height / 2),
    mark(after, "after", height / 2),
  );
}
