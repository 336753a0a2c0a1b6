/**
 * Line charts and stacked areas as static SVG. A value that is not finite leaves a gap; nothing is interpolated.
 */
import {
  type EndLabel,
  type Frame,
  line,
  makeFrame,
  pixel,
  renderAxes,
  renderEndLabels,
  renderSvg,
  type Size,
  type StageMark,
} from "./chart-frame.ts";
import { element, type Markup } from "./markup.ts";
import { domainOf, formatNumber, type Range } from "./scale.ts";

export interface Point {
  readonly x: number;
  readonly y: number;
  /** 95 % interval, drawn for `points` series. */
  readonly interval?: Range;
}

export interface Series {
  readonly label: string;
  readonly points: readonly Point[];
  /** Index of the series colour, from 0. */
  readonly color: number;
  /** `faint` is for raw values behind a smoothed line and has no label of its own. */
  readonly kind: "line" | "faint" | "points";
}

export interface ChartContent {
  /** What is shown, with its unit; the description starts with it. */
  readonly title: string;
  readonly xLabel: string;
  readonly series: readonly Series[];
  readonly stages?: readonly StageMark[];
  /** Where values are shares and the whole range matters. */
  readonly yDomain?: Range;
}

/** A chart of lines, faint lines and points with intervals. */
export function lineChart(content: ChartContent, size: Size): Markup {
  const shown = content.series.filter(({ points }) => points.some(({ y }) => Number.isFinite(y)));
  const values = shown.flatMap(({ points }) => points.flatMap(({ y, interval }) => [y, ...(interval ?? [])]));
  const labelled = shown.filter(({ kind }) => kind !== "faint");
  const labels = labelled.length > 1 ? labelled.map(({ label }) => label) : [];
  const domains = { x: xDomainOf(shown), y: content.yDomain ?? domainOf(values) };
  const frame = makeFrame(size, domains, labels);
  const endLabels = labels.length === 0 ? [] : labelled.map((series) => endLabel(series, frame));
  return renderSvg(size, describeChart(content.title, labelled), [
    ...renderAxes(frame, content.xLabel, content),
    ...shown.flatMap((series) =>
      series.kind === "points" ? renderPoints(series, frame) : [renderLine(series, frame)],
    ),
    ...renderEndLabels(frame, endLabels),
  ]);
}

/** Areas on top of each other, for parts of a whole; every series has the same x values. */
export function stackedChart(content: ChartContent, size: Size): Markup {
  const shown = content.series.filter(({ points }) => points.some(({ y }) => y > 0));
  const layers = stack(shown);
  const tops = layers.flat().map(([, high]) => high);
  const domains = { x: xDomainOf(shown), y: content.yDomain ?? domainOf(tops) };
  const frame = makeFrame(
    size,
    domains,
    shown.map(({ label }) => label),
  );
  const endLabels = shown.map(({ label, color }, index): EndLabel => {
    const [low, high] = layers[index]?.at(-1) ?? [0, 0];
    return { text: label, color, y: frame.y((low + high) / 2) };
  });
  return renderSvg(size, describeChart(content.title, shown), [
    ...renderAxes(frame, content.xLabel, content),
    ...shown.map((series, index) => renderArea(series, layers[index] ?? [], frame)),
    ...renderEndLabels(frame, endLabels),
  ]);
}

/**
 * Mean over a centred window of 2 · `radius` + 1 points, shorter at the ends. A gap (a value that is not finite)
 * ends the window, so that nothing is averaged across it.
 */
export function smooth(points: readonly Point[], radius: number): Point[] {
  const isGap = (index: number): boolean => !Number.isFinite(points[index]?.y);
  return points.map((point, index) => {
    if (isGap(index)) return point;
    let [first, last] = [index, index];
    while (first > index - radius && !isGap(first - 1)) first--;
    while (last < index + radius && !isGap(last + 1)) last++;
    const window = points.slice(first, last + 1);
    return { x: point.x, y: window.reduce((sum, { y }) => sum + y, 0) / window.length };
  });
}

/** What a chart says in words: each series with its first and last value. */
export function describeChart(title: string, series: readonly Series[]): string {
  const sentences = series.map(({ label, points }) => {
    const finite = points.filter(({ y }) => Number.isFinite(y));
    const [first, last] = [finite[0], finite.at(-1)];
    return first && last
      ? `${label}: from ${formatNumber(first.y)} to ${formatNumber(last.y)}`
      : `${label}: no values`;
  });
  return `${title}. ${sentences.join("; ")}.`;
}

function xDomainOf(series: readonly Series[]): Range {
  const xs = series.flatMap(({ points }) => points.map(({ x }) => x));
  return xs.length === 0
    ? [0, 1]
    : [xs.reduce((a, b) => Math.min(a, b)), xs.reduce((a, b) => Math.max(a, b))];
}

function endLabel({ label, color, points }: Series, frame: Frame): EndLabel {
  const last = points.findLast(({ y }) => Number.isFinite(y));
  return { text: label, color, y: frame.y(last?.y ?? frame.yDomain[0]) };
}

function renderLine({ points, color, kind }: Series, frame: Frame): Markup {
  let isDrawing = false;
  const commands = points.map(({ x, y }, index) => {
    if (!Number.isFinite(y)) {
      isDrawing = false;
      return "";
    }
    const place = `${pixel(frame.x(x))} ${pixel(frame.y(y))}`;
    const isAlone = !isDrawing && !Number.isFinite(points[index + 1]?.y);
    // A point between gaps would be a line of no length.
    const command = isDrawing ? `L${place}` : isAlone ? `M${place}m-1.5 0h3` : `M${place}`;
    isDrawing = true;
    return command;
  });
  return element("path", { class: `${kind} stroke-${color + 1}`, d: commands.join("") });
}

function renderPoints({ points, color }: Series, frame: Frame): Markup[] {
  return points
    .filter(({ y }) => Number.isFinite(y))
    .map(({ x, y, interval }) =>
      element(
        "g",
        { class: `points stroke-${color + 1} fill-${color + 1}` },
        element("title", {}, describePoint(x, y, interval)),
        interval && line("whisker", frame.x(x), frame.y(interval[0]), frame.x(x), frame.y(interval[1])),
        element("circle", { cx: pixel(frame.x(x)), cy: pixel(frame.y(y)), r: 4 }),
      ),
    );
}

function describePoint(x: number, y: number, interval: Range | undefined): string {
  const range = interval ? ` (95 %: ${formatNumber(interval[0])} to ${formatNumber(interval[1])})` : "";
  return `step ${formatNumber(x)}: ${formatNumber(y)}${range}`;
}

function stack(series: readonly Series[]): Range[][] {
  const heights: number[] = [];
  return series.map(({ points }) =>
    points.map(({ y }, index) => {
      const low = heights[index] ?? 0;
      const high = low + (Number.isFinite(y) ? y : 0);
      heights[index] = high;
      return [low, high] as const;
    }),
  );
}

function renderArea({ points, color, label }: Series, layer: readonly Range[], frame: Frame): Markup {
  const corner = (index: number, end: 0 | 1): string =>
    `${pixel(frame.x(points[index]?.x ?? 0))} ${pixel(frame.y(layer[index]?.[end] ?? 0))}`;
  const indices = points.map((_, index) => index);
  const there = indices.map((index) => corner(index, 1));
  const back = indices.reverse().map((index) => corner(index, 0));
  return element(
    "path",
    { class: `area fill-${color + 1}`, d: `M${[...there, ...back].join("L")}Z` },
    element("title", {}, label),
  );
}
