/**
 * The table of methods as one page of HTML that needs nothing else: the table, for each set a plot of every method with its
 * interval, and exact match against searches, the utility and cost of each method at a glance.
 */
import type { MethodTable, TableRow } from "../../evaluation/method-table.ts";
import { element, fragment, type Markup, trusted } from "../report/markup.ts";
import { domainOf, formatNumber, linearScale, ticks } from "../report/scale.ts";
import { account, costColumns } from "./texts.ts";

const style = `body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:70rem;padding:0 1rem;color:#1a1a1a;background:#fff}
table{border-collapse:collapse;display:block;overflow-x:auto}th,td{padding:.25rem .6rem;text-align:right;border-bottom:1px solid #ddd;white-space:nowrap}
th:first-child,td:first-child{text-align:left}svg{max-width:100%;height:auto}.failed{color:#a00}small{color:#555}
@media(prefers-color-scheme:dark){body{color:#eee;background:#111}th,td{border-color:#444}small{color:#aaa}.failed{color:#f88}}`;

/** The whole document. */
export function methodPage(table: MethodTable): string {
  const page = element(
    "html",
    { lang: "en" },
    element(
      "head",
      {},
      element("meta", { charset: "utf-8" }),
      element("meta", { name: "viewport", content: "width=device-width" }),
      element("title", {}, "Methods"),
      element("style", {}, trusted(style)),
    ),
    element(
      "body",
      {},
      element("h1", {}, "Methods"),
      tableOf(table),
      element("h2", {}, "Exact match by set"),
      ...table.sets.map((set) => intervalPlot(table, set)),
      element("h2", {}, "Exact match against searches"),
      scatter(table),
      element("h2", {}, "Every method"),
      element("ul", {}, ...table.rows.map((row) => accountItem(row))),
    ),
  );
  return `<!doctype html>\n${page.markup}\n`;
}

function accountItem(row: TableRow): Markup {
  return element("li", { class: row.result === undefined ? "failed" : undefined }, account(row));
}

function tableOf({ sets, rows, reference }: MethodTable): Markup {
  const header = ["method", ...sets, "macro", ...costColumns];
  return fragment(
    element(
      "table",
      {},
      element("tr", {}, ...header.map((name) => element("th", {}, name))),
      ...rows.map((row) => element("tr", {}, element("td", {}, row.name), ...cellsOf(row, sets))),
    ),
    element(
      "p",
      {},
      element(
        "small",
        {},
        `▲ better, ▼ worse, ≈ not distinguishable from ${reference ?? "none"}, Holm's correction over all cells; 95 % intervals in the plots.`,
      ),
    ),
  );
}

function cellsOf({ bySet, differences, result }: TableRow, sets: readonly string[]): Markup[] {
  const signs = { better: " ▲", worse: " ▼", "not distinguishable": " ≈" } as const;
  const scores = sets.map((set) => {
    const em = bySet[set]?.em;
    const verdict = differences[set]?.verdict;
    const text =
      em === undefined ? "–" : `${em.mean.toFixed(3)}${verdict === undefined ? "" : signs[verdict]}`;
    return element(
      "td",
      { title: em && `${em.ci[0].toFixed(3)} to ${em.ci[1].toFixed(3)}, n = ${em.n}` },
      text,
    );
  });
  const overall = result?.summary.overall;
  const rest = [result?.summary.macroEm, ...costColumns.map((name) => overall?.[name]?.mean)];
  return [
    ...scores,
    ...rest.map((value) => element("td", {}, value === undefined ? "–" : formatNumber(value))),
  ];
}

const width = 640;
const left = 170;
const right = 20;
const rowHeight = 22;

/** Every method that has the set, a dot with its interval. */
function intervalPlot({ rows }: MethodTable, set: string): Markup {
  const shown = rows.filter((row) => row.bySet[set]?.em !== undefined);
  const high = shown.map((row) => row.bySet[set]?.em?.ci[1] ?? 0);
  const x = linearScale(domainOf(high), [left, width - right]);
  const bottom = 24 + shown.length * rowHeight;
  const marks = shown.flatMap((row, i) => {
    const em = row.bySet[set]?.em;
    if (em === undefined) return [];
    const y = 24 + (i + 0.5) * rowHeight;
    return [
      svgText(left - 8, y + 4, row.name, "end"),
      element("line", { x1: x(em.ci[0]), x2: x(em.ci[1]), y1: y, y2: y, stroke: "currentColor" }),
      element("circle", { cx: x(em.mean), cy: y, r: 4, fill: "currentColor" }),
    ];
  });
  const axis = ticks(domainOf(high), 5).flatMap((tick) => [
    element("line", { x1: x(tick), x2: x(tick), y1: 20, y2: bottom, stroke: "currentColor", opacity: 0.15 }),
    svgText(x(tick), bottom + 14, formatNumber(tick), "middle"),
  ]);
  return svg(bottom + 20, `Exact match on ${set}`, [svgText(left, 14, set, "start"), ...axis, ...marks]);
}

function scatter({ rows }: MethodTable): Markup {
  const points = rows.flatMap(({ name, result }) => {
    const { em, searches } = result?.summary.overall ?? {};
    return em && searches ? [{ name, em: em.mean, searches: searches.mean }] : [];
  });
  const height = 320;
  const domainX = domainOf(points.map(({ searches }) => searches));
  const domainY = domainOf(points.map(({ em }) => em));
  const x = linearScale(domainX, [50, width - 120]);
  const y = linearScale(domainY, [height - 40, 10]);
  return svg(height, "Exact match against searches a question", [
    ...ticks(domainX, 5).map((tick) => svgText(x(tick), height - 22, formatNumber(tick), "middle")),
    ...ticks(domainY, 5).map((tick) => svgText(44, y(tick) + 4, formatNumber(tick), "end")),
    svgText(width / 2, height - 4, "searches a question", "middle"),
    ...points.flatMap(({ name, em, searches }) => [
      element("circle", { cx: x(searches), cy: y(em), r: 4, fill: "currentColor" }),
      svgText(x(searches) + 7, y(em) + 4, name, "start"),
    ]),
  ]);
}

function svgText(x: number, y: number, text: string, anchor: "start" | "middle" | "end"): Markup {
  return element("text", { x, y, "text-anchor": anchor, "font-size": 12, fill: "currentColor" }, text);
}

function svg(height: number, label: string, children: readonly Markup[]): Markup {
  return element(
    "svg",
    { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": label },
    ...children,
  );
}
