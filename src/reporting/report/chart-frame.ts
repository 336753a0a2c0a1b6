/**
 * What all charts share: the plot area, the two axes with units, the marks between stages, and labels that stand
 * at the end of what they name instead of a legend. Pure: numbers in, SVG out.
 */
import { element, type Markup } from "./markup.ts";
import { formatNumber, linearScale, type Range, ticks } from "./scale.ts";

export interface Size {
  readonly width: number;
  readonly height: number;
}

export interface StageMark {
  /** Where the stage begins on the x axis. */
  readonly x: number;
  readonly label: string;
}

export interface AxisOptions {
  readonly stages?: readonly StageMark[] | undefined;
  readonly isContinuous?: boolean;
}

export interface Frame extends Size {
  readonly left: number;
  readonly right: number;
  readonly top: number;
  readonly bottom: number;
  readonly x: (value: number) => number;
  readonly y: (value: number) => number;
  readonly xDomain: Range;
  readonly yDomain: Range;
}

export interface EndLabel {
  readonly text: string;
  /** Where it would like to stand, in pixels from the top. */
  readonly y: number;
  /** Index of the series colour, from 0. */
  readonly color: number;
}

/** Rough width of text of the charts' size in pixels, for margins. */
const characterWidth = 7;
const labelHeight = 15;

/** Leaves room for tick labels on the left and for `endLabels` on the right. */
export function makeFrame(
  size: Size,
  domains: { readonly x: Range; readonly y: Range },
  endLabels: readonly string[],
): Frame {
  const tickWidth =
    Math.max(...ticks(domains.y, 4).map((tick) => formatNumber(tick).length)) * characterWidth;
  const labelWidth = Math.max(0, ...endLabels.map((label) => label.length)) * characterWidth;
  const edges = {
    left: Math.ceil(tickWidth) + 12,
    right: size.width - (labelWidth > 0 ? Math.ceil(labelWidth) + 10 : 12),
    top: 14,
    bottom: size.height - 38,
  };
  return {
    ...size,
    ...edges,
    xDomain: domains.x,
    yDomain: domains.y,
    x: linearScale(domains.x, [edges.left, edges.right]),
    y: linearScale(domains.y, [edges.bottom, edges.top]),
  };
}

/** Grid lines, tick labels and the name of the x axis; x is counted in whole steps unless `isContinuous`. */
export function renderAxes(
  frame: Frame,
  xLabel: string,
  { stages = [], isContinuous = false }: AxisOptions = {},
): Markup[] {
  const yTicks = ticks(frame.yDomain, 4).map((tick) =>
    element(
      "g",
      {},
      line("grid", frame.left, frame.y(tick), frame.right, frame.y(tick)),
      text("tick end", frame.left - 7, frame.y(tick) + 4, formatNumber(tick)),
    ),
  );
  const xCount = Math.max(2, Math.floor((frame.right - frame.left) / 70));
  const xTicks = ticks(frame.xDomain, xCount, !isContinuous).map((tick) =>
    text("tick middle", frame.x(tick), frame.bottom + 17, formatNumber(tick)),
  );
  const marks = stages.map(({ x, label }) =>
    element(
      "g",
      {},
      line("stage", frame.x(x), frame.top - 4, frame.x(x), frame.bottom),
      text("tick", frame.x(x) + 5, frame.top + 4, label),
    ),
  );
  return [
    ...yTicks,
    line("axis", frame.left, frame.bottom, frame.right, frame.bottom),
    ...xTicks,
    text("tick middle", (frame.left + frame.right) / 2, frame.height - 4, xLabel),
    ...marks,
  ];
}

/** Labels to the right of the plot, moved apart where they would overlap, kept within the plot's height. */
export function renderEndLabels(frame: Frame, labels: readonly EndLabel[]): Markup[] {
  const places = spread(
    labels.map(({ y }) => y),
    labelHeight,
    [frame.top, frame.bottom],
  );
  return labels.map(({ text: label, color }, index) =>
    text(`label fill-${color + 1}`, frame.right + 6, (places[index] as number) + 4, label),
  );
}

/**
 * Positions at least `distance` apart and as near as a single sweep allows to those wanted, within `range` when
 * they fit; in the order of the input.
 */
export function spread(wanted: readonly number[], distance: number, range: Range): number[] {
  const order = wanted.map((_, index) => index).sort((a, b) => (wanted[a] as number) - (wanted[b] as number));
  const places = [...wanted];
  let lowest = range[0];
  for (const index of order) {
    places[index] = Math.max(wanted[index] as number, lowest);
    lowest = (places[index] as number) + distance;
  }
  let highest = range[1];
  for (const index of order.reverse()) {
    places[index] = Math.min(places[index] as number, highest);
    highest = (places[index] as number) - distance;
  }
  return places;
}

/** The `svg` element with its description for people who cannot see it. */
export function renderSvg(size: Size, description: string, children: readonly Markup[]): Markup {
  return element(
    "svg",
    { viewBox: `0 0 ${size.width} ${size.height}`, role: "img", "aria-label": description },
    ...children,
  );
}

export function line(name: string, x1: number, y1: number, x2: number, y2: number): Markup {
  return element("line", { class: name, x1: pixel(x1), y1: pixel(y1), x2: pixel(x2), y2: pixel(y2) });
}

export function text(name: string, x: number, y: number, content: string): Markup {
  return element("text", { class: name, x: pixel(x), y: pixel(y) }, content);
}

/** A coordinate with one decimal, which keeps the file small. */
export function pixel(value: number): string {
  return String(Math.round(value * 10) / 10);
}
