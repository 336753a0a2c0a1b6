/** The report of a sweep: a table, and for each cost a chart of utility against it with the Pareto front. Pure. */
import type { Front, SweepPoint } from "../evaluation/sweep.ts";
import { markdownTable, markdownText } from "./markdown.ts";
import { lineChart } from "./report/charts.ts";
import { element, fragment, type Markup, trusted } from "./report/markup.ts";
import { formatNumber, formatShare } from "./report/scale.ts";
import { styleSheet } from "./report/style.ts";

export interface Sweep {
  /** Name of the recipe. */
  readonly name: string;
  /** Dotted, such as `planner.alpha`. */
  readonly key: string;
  /** Metric that counts as utility. */
  readonly utility: string;
  readonly points: readonly SweepPoint[];
  readonly fronts: readonly Front[];
  /** Values whose run failed, with why. */
  readonly failures: readonly { readonly value: unknown; readonly message: string }[];
}

const units = {
  searches: "searches a question",
  tokens: "tokens a question",
  seconds: "seconds a question",
  dollars: "dollars a question",
} as const;

/** The table with what failed, as Markdown. */
export function sweepMarkdown(sweep: Sweep): string {
  const { name, key, utility, failures } = sweep;
  return [
    `# ${markdownText(name)}: ${markdownText(key)}`,
    `Utility is ${utility}, the mean over held-out questions with its 95 % interval. ${frontSentence(sweep)}`,
    markdownTable(
      head(sweep),
      rows(sweep).map((cells) => cells.map(markdownText)),
    ),
    ...failures.map(({ value, message }) => `- ${markdownText(`${shown(value)} failed: ${message}`)}`),
    "",
  ].join("\n\n");
}

/** The same with charts, as one HTML file that needs no network. */
export function sweepHtml(sweep: Sweep): string {
  const { name, key, utility, failures } = sweep;
  const title = `${name}: ${key}`;
  const cells = (tag: string, values: readonly string[]): Markup =>
    element(
      "tr",
      {},
      values.map((value) => element(tag, {}, value)),
    );
  const body = element(
    "body",
    {},
    element(
      "main",
      {},
      element("h1", {}, title),
      element("p", {}, `Utility is ${utility}. ${frontSentence(sweep)}`),
      sweep.fronts.map((front) => frontFigure(front, sweep)),
      element(
        "table",
        {},
        element("thead", {}, cells("th", head(sweep))),
        element(
          "tbody",
          {},
          rows(sweep).map((row) => cells("td", row)),
        ),
      ),
      failures.map(({ value, message }) => element("p", {}, `${shown(value)} failed: ${message}`)),
    ),
  );
  const page = fragment(
    element(
      "head",
      {},
      element("meta", { charset: "utf-8" }),
      element("title", {}, title),
      element("style", {}, trusted(styleSheet)),
    ),
    body,
  );
  return `<!doctype html>\n<html lang="en">${page.markup}</html>\n`;
}

function frontSentence({ fronts }: Sweep): string {
  const parts = fronts.map(
    ({ cost, points, hypervolume }) =>
      `${cost}: ${points.map(({ value }) => shown(value)).join(", ")} (hypervolume ${hypervolume.toFixed(3)})`,
  );
  return `On the Pareto front by ${parts.join("; by ")}.`;
}

function head({ key, points }: Sweep): string[] {
  const isPriced = points.some(({ dollars }) => dollars !== undefined);
  return [
    key,
    "n",
    "utility",
    "95 % interval",
    "searches",
    "tokens",
    "seconds",
    ...(isPriced ? ["dollars"] : []),
  ];
}

function rows(sweep: Sweep): string[][] {
  const isPriced = head(sweep).includes("dollars");
  return sweep.points.map(({ value, n, utility, utilityInterval, searches, tokens, seconds, dollars }) => [
    shown(value),
    String(n),
    utility.toFixed(3),
    utilityInterval.map((end) => end.toFixed(3)).join(" to "),
    searches.toFixed(3),
    tokens.toFixed(1),
    seconds.toPrecision(3),
    ...(isPriced ? [dollars === undefined ? "-" : formatNumber(dollars)] : []),
  ]);
}

function shown(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** All points with their intervals, and a line through the front. */
function frontFigure({ cost, points: front, hypervolume }: Front, { points, utility }: Sweep): Markup {
  const at = (point: SweepPoint) => ({
    x: point[cost] as number,
    y: point.utility,
    interval: point.utilityInterval,
  });
  const title = `${utility} against ${units[cost]}`;
  const chart = lineChart(
    {
      title,
      xLabel: units[cost],
      series: [
        { label: "Pareto front", points: front.map(at), color: 0, kind: "line" },
        { label: "all values", points: points.map(at), color: 1, kind: "points" },
      ],
    },
    { width: 640, height: 320 },
  );
  return element(
    "figure",
    {},
    element("figcaption", {}, `${title}, hypervolume ${formatShare(hypervolume)}`),
    chart,
  );
}
