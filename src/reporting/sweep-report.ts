/** The report of a sweep: a table, and for each cost a chart of utility against it with the Pareto front. Pure. */
import type { Front, SweepPoint } from "../evaluation/sweep.ts";
import { markdownTable, markdownText } from "./markdown.ts";
import { showDollars } from "./method-table/columns.ts";
import { namedPointsChart } from "./report/labelled-points.ts";
import { element, type Markup } from "./report/markup.ts";
import { formatShare } from "./report/scale.ts";
import { caption, numberTable, section, staticPage } from "./report/static-page.ts";

export interface Sweep {
  /** Name of the recipe. */
  readonly name: string;
  /** Dotted, such as `planner.alpha`. */
  readonly key: string;
  /** Metric that counts as utility. */
  readonly utility: string;
  /** What its numbers are of: questions, split, decoding; absent where nothing was measured. */
  readonly asked?: string | undefined;
  readonly points: readonly SweepPoint[];
  readonly fronts: readonly Front[];
  /** Values whose run failed, with why. */
  readonly failures: readonly { readonly value: unknown; readonly message: string }[];
}

const units = {
  searches: "searches a question",
  tokens: "tokens a question",
  seconds: "seconds a question",
  dollars: "dollars for 1,000 questions",
} as const;
/** What a cost of a question is multiplied by in its chart. */
const scales = { searches: 1, tokens: 1, seconds: 1, dollars: 1000 } as const;

/** The table with what failed, as Markdown. */
export function sweepMarkdown(sweep: Sweep): string {
  const { name, key, failures } = sweep;
  return [
    `# ${markdownText(name)}: ${markdownText(key)}`,
    utilitySentence({ ...sweep, asked: sweep.asked && markdownText(sweep.asked) }),
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
  const { name, key, failures, points, fronts } = sweep;
  const [first, ...others] = head(sweep);
  return staticPage(
    {
      title: `${name}: ${key}`,
      eyebrow: `forager sweep · ${points.length} of ${points.length + failures.length} values`,
    },
    section(
      "Worth having",
      caption(utilitySentence(sweep)),
      element(
        "div",
        { class: "grid wide" },
        fronts.map((front) => frontFigure(front, sweep)),
      ),
    ),
    section("All values", numberTable([first as string, ...others], rows(sweep))),
    failures.length > 0 &&
      section(
        "Not measured",
        element(
          "ul",
          { class: "accounts" },
          failures.map(({ value, message }) =>
            element("li", { class: "bad" }, `${shown(value)}: ${message}`),
          ),
        ),
      ),
  );
}

function utilitySentence(sweep: Sweep): string {
  const { utility, asked = "held-out questions" } = sweep;
  return `Utility is ${utility}, the mean over ${asked} with its 95 % interval. ${frontSentence(sweep)}`;
}

function frontSentence({ fronts }: Sweep): string {
  const parts = fronts.map(
    ({ cost, points, hypervolume }) =>
      `${cost}: ${points.map(({ value }) => shown(value)).join(", ")} (hypervolume ${hypervolume.toFixed(3)})`,
  );
  return parts.length === 0 ? "No value has a front." : `On the Pareto front by ${parts.join("; by ")}.`;
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
    utilityInterval.map((end) => end.toFixed(3)).join("–"),
    searches.toFixed(3),
    tokens.toFixed(1),
    seconds.toPrecision(3),
    ...(isPriced ? [dollars === undefined ? "-" : showDollars(dollars)] : []),
  ]);
}

function shown(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** All points with their intervals, and a line in steps along the front. */
function frontFigure({ cost, points: front, hypervolume }: Front, { points, utility }: Sweep): Markup {
  const at = (point: SweepPoint) => ({
    name: shown(point.value),
    x: scales[cost] * (point[cost] as number),
    y: point.utility,
    interval: point.utilityInterval,
    isMarked: !front.includes(point),
  });
  const title = `${utility.charAt(0).toUpperCase()}${utility.slice(1)} against ${units[cost]}`;
  return element(
    "figure",
    {},
    element(
      "figcaption",
      {},
      element("h3", {}, title),
      caption(
        `Hypervolume ${formatShare(hypervolume)}; the line is the front, values off it have the other colour.`,
      ),
    ),
    namedPointsChart(
      { title, xLabel: units[cost], points: points.map(at), front: front.map(at) },
      { width: 500, height: 300 },
    ),
  );
}
