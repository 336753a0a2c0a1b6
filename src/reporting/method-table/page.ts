/**
 * The table of methods as one page of HTML that needs nothing else: the tables, for each set a plot of every method with its
 * interval, and the score against searches, tokens, seconds and dollars. Pure.
 */
import type { MetricName } from "../../evaluation/item.ts";
import type { MethodTable, TableRow } from "../../evaluation/method-table.ts";
import { line, pixel, renderSvg, type Size, text } from "../report/chart-frame.ts";
import { namedPointsChart } from "../report/labelled-points.ts";
import { type Child, element, fragment, type Markup } from "../report/markup.ts";
import { domainOf, formatNumber, linearScale, ticks } from "../report/scale.ts";
import { caption, numberTable, section, staticPage } from "../report/static-page.ts";
import { type Column, metricLabel, shownColumns, showScore } from "./columns.ts";
import { selectiveSection } from "./selective.ts";
import { account, columnCell, costLegend, legend, macroCell, signs } from "./texts.ts";

/** The whole document. */
export function methodPage(table: MethodTable): string {
  const measured = table.rows.filter(({ result }) => result !== undefined);
  const missing = table.rows.length - measured.length;
  const sets = table.sets.filter((set) => set !== "all").length;
  return staticPage(
    {
      title: `${plural(measured.length, "method")} on ${plural(sets, "set")}`,
      eyebrow: missing > 0 ? `forager table · ${missing} not measured` : "forager table",
    },
    section(capital(metricLabel(table.metric)), caption(legend(table)), scoreTable(table)),
    measured.length > 0 && measuredSections(table, measured),
    selectiveSection(table),
    section(
      "Every method",
      element(
        "ul",
        { class: "accounts" },
        table.rows.map((row) => element("li", { class: row.result ? undefined : "bad" }, account(row))),
      ),
    ),
  );
}

function measuredSections(table: MethodTable, measured: readonly TableRow[]): Child[] {
  const { scores, costs } = shownColumns(table);
  const columnTable = (columns: readonly Column[]): Child =>
    numberTable(
      ["Method", ...columns.map(({ label }) => label)],
      measured.map((row) => [row.name, ...columns.map((column) => columnCell(row, column))]),
    );
  return [
    section("Other scores, all questions", columnTable(scores)),
    section("What a question took", caption(`Means. ${costLegend}`), columnTable(costs)),
    section(
      `${capital(metricLabel(table.metric))} by set`,
      caption("Means with 95 % intervals."),
      element(
        "div",
        { class: "grid" },
        table.sets.map((set) => setFigure(table, set)),
      ),
    ),
    section(
      "What it is worth",
      caption("All questions; up and to the left is better."),
      element("div", { class: "grid wide" }, worthFigures(table)),
    ),
  ];
}

function scoreTable(table: MethodTable): Child {
  const { sets, rows, metric } = table;
  const isSeveral = sets.length > 1;
  return numberTable(
    ["Method", ...sets, ...(isSeveral ? ["macro"] : [])],
    rows.map((row) => [
      row.name,
      ...sets.map((set) => scoreCell(row, set, metric)),
      ...(isSeveral ? [macroCell(row, metric)] : []),
    ]),
  );
}

function scoreCell(row: TableRow, set: string, metric: MetricName): Child {
  const estimate = row.bySet[set]?.[metric];
  if (estimate === undefined) return "–";
  const { mean, ci, n } = estimate;
  const verdict = row.differences[set]?.verdict;
  const tones = { better: "good", worse: "bad", "not distinguishable": "muted" } as const;
  return fragment(
    showScore(metric, mean),
    verdict !== undefined && [
      " ",
      element("span", { class: tones[verdict], title: verdict }, signs[verdict]),
    ],
    " ",
    element(
      "span",
      { class: "interval" },
      `(${showScore(metric, ci[0])}–${showScore(metric, ci[1])}, n ${n})`,
    ),
  );
}

const rowHeight = 22;
const letter = 6.6;
const longestName = 20;

/** Every method that has the set, a dot with its interval. */
function setFigure({ rows, metric, reference }: MethodTable, set: string): Child {
  const shown = rows.flatMap((row) => {
    const estimate = row.bySet[set]?.[metric];
    return estimate === undefined ? [] : [{ name: row.name, estimate }];
  });
  if (shown.length === 0) return undefined;
  const size: Size = { width: 340, height: 44 + shown.length * rowHeight };
  const names = shown.map(({ name }) =>
    name.length > longestName ? `${name.slice(0, longestName - 1)}…` : name,
  );
  const left = Math.max(...names.map(({ length }) => length)) * letter + 12;
  const domain = domainOf(shown.flatMap(({ estimate: { ci } }) => [...ci]));
  const x = linearScale(domain, [left, size.width - 12]);
  const bottom = 8 + shown.length * rowHeight;
  const description = shown.map(
    ({ name, estimate: { mean, ci } }) =>
      `${name} ${formatNumber(mean)}, from ${formatNumber(ci[0])} to ${formatNumber(ci[1])}`,
  );
  const chart = renderSvg(size, `${metricLabel(metric)} on ${set}: ${description.join("; ")}.`, [
    ...ticks(domain, 4).flatMap((tick) => [
      line("grid", x(tick), 8, x(tick), bottom),
      text("tick middle", x(tick), bottom + 17, formatNumber(tick)),
    ]),
    ...shown.flatMap(({ name, estimate: { mean, ci } }, i): Markup[] => {
      const y = 8 + (i + 0.5) * rowHeight;
      return [
        text("end", left - 8, y + 4, names[i] as string),
        element(
          "g",
          { class: name === reference ? "points stroke-2 fill-2" : "points stroke-1 fill-1" },
          line("whisker", x(ci[0]), y, x(ci[1]), y),
          element("circle", { cx: pixel(x(mean)), cy: pixel(y), r: 4.5 }),
        ),
      ];
    }),
  ]);
  const n = Math.max(...shown.map(({ estimate }) => estimate.n));
  return element(
    "figure",
    { class: "small" },
    element("figcaption", {}, element("h3", {}, set), caption(`${plural(n, "question")}`)),
    chart,
  );
}

const worths = [
  { metric: "searches", xLabel: "searches a question", scale: 1 },
  { metric: "totalTokens", xLabel: "tokens a question", scale: 1 },
  { metric: "timeMs", xLabel: "seconds a question", scale: 1 / 1000 },
  { metric: "totalDollars", xLabel: "dollars for 1,000 questions", scale: 1000 },
] as const;

function worthFigures({ rows, metric, reference }: MethodTable): Child[] {
  return worths.flatMap(({ metric: cost, xLabel, scale }) => {
    const points = rows.flatMap(({ name, result }) => {
      const overall = result?.summary.overall;
      const [score, price] = [overall?.[metric], overall?.[cost]];
      if (score === undefined || price === undefined) return [];
      return [
        { name, x: price.mean * scale, y: score.mean, interval: score.ci, isMarked: name === reference },
      ];
    });
    if (points.length < 2) return [];
    const title = `${capital(metricLabel(metric))} against ${xLabel}`;
    return [
      element(
        "figure",
        {},
        element("figcaption", {}, element("h3", {}, title)),
        namedPointsChart({ title, xLabel, points }, { width: 500, height: 300 }),
      ),
    ];
  });
}

function plural(count: number, name: string): string {
  return `${count} ${name}${count === 1 ? "" : "s"}`;
}

function capital(words: string): string {
  return `${words.charAt(0).toUpperCase()}${words.slice(1)}`;
}
