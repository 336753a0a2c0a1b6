/** Selective answering in the table of methods: how much each method answers, how often that is wrong, and the curve of both. Pure. */
import type { MethodTable, TableRow } from "../../evaluation/method-table.ts";
import type { RiskCoverage } from "../../evaluation/risk-coverage.ts";
import { markdownTable, markdownText } from "../markdown.ts";
import { lineChart } from "../report/charts.ts";
import { type Child, element } from "../report/markup.ts";
import { caption, numberTable, section } from "../report/static-page.ts";

interface Selective {
  readonly name: string;
  readonly selective: RiskCoverage;
}

const title = "Selective answering";
const explanation =
  "Coverage is the share of all questions that is answered, risk the share of these answers that is wrong by exact match. The area is the mean risk as answers are given one after the other, the most confident first; lower is better.";
const head = ["coverage", "risk", "area"];

/** Methods that abstain, or that tell how sure they are. */
function selectiveMethods(rows: readonly TableRow[]): Selective[] {
  return rows.flatMap(({ name, result }) => {
    const selective = result?.selective;
    const abstains = (result?.summary.overall.abstained?.mean ?? 0) > 0;
    return selective !== undefined && (abstains || selective.area !== undefined) ? [{ name, selective }] : [];
  });
}

function cells({ coverage, risk, area }: RiskCoverage): string[] {
  return [coverage.toFixed(3), risk.toFixed(3), area === undefined ? "–" : area.toFixed(3)];
}

/** The numbers as Markdown, in blocks; none where no method is selective. */
export function selectiveMarkdown({ rows }: MethodTable): string[] {
  const methods = selectiveMethods(rows);
  if (methods.length === 0) return [];
  const lines = methods.map(({ name, selective }) => [markdownText(name), ...cells(selective)]);
  return [`## ${title}`, markdownTable(["method", ...head], lines), explanation];
}

const colours = 6;

/** The numbers and the curves; undefined where no method is selective. */
export function selectiveSection({ rows }: MethodTable): Child {
  const methods = selectiveMethods(rows);
  if (methods.length === 0) return undefined;
  const series = methods
    .filter(({ selective }) => selective.points.length > 1)
    .map(({ name, selective }, index) => ({
      label: name,
      points: selective.points.map(({ coverage, risk }) => ({ x: coverage, y: risk })),
      color: index % colours,
      kind: "line" as const,
    }));
  return section(
    title,
    caption(explanation),
    numberTable(
      ["Method", ...head],
      methods.map(({ name, selective }) => [name, ...cells(selective)]),
    ),
    series.length > 0 &&
      element(
        "figure",
        {},
        element("figcaption", {}, element("h3", {}, "Risk against coverage")),
        lineChart(
          { title: "Risk against coverage", xLabel: "share of the questions that is answered", series },
          { width: 500, height: 300 },
        ),
      ),
  );
}
