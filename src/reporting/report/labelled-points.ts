/**
 * A chart of a few points that each have a name, with a line through some of them: what is worth having against what it
 * costs. A label stands beside its point where nothing else stands. Pure.
 */
import { type Frame, line, makeFrame, pixel, renderAxes, renderSvg, type Size, text } from "./chart-frame.ts";
import { element, type Markup } from "./markup.ts";
import { domainOf, formatNumber, type Range } from "./scale.ts";

export interface NamedPoint {
  readonly name: string;
  readonly x: number;
  readonly y: number;
  /** 95 % interval of y. */
  readonly interval?: Range;
  /** Drawn in the second colour: what the others are compared with. */
  readonly isMarked?: boolean;
}

export interface PointsContent {
  readonly title: string;
  readonly xLabel: string;
  readonly points: readonly NamedPoint[];
  /** A line in steps through these points, by rising x. */
  readonly front?: readonly NamedPoint[];
}

/** Rough size of a label's letters in pixels. */
const letter = 7.2;
const lineHeight = 14;
const longestLabel = 22;

/** The chart; the description names every point with its values. */
export function namedPointsChart({ title, xLabel, points, front = [] }: PointsContent, size: Size): Markup {
  const domains = {
    x: domainOf(points.map(({ x }) => x)),
    y: closeDomain(points.flatMap(({ y, interval }) => [y, ...(interval ?? [])])),
  };
  const frame = makeFrame(size, domains, []);
  const at = points.map((point) => ({ ...point, px: frame.x(point.x), py: frame.y(point.y) }));
  const labels = placeLabels(at, { frame, front });
  const steps = front.map((point, i) => {
    const [x, y] = [pixel(frame.x(point.x)), pixel(frame.y(point.y))];
    return i === 0 ? `M${x} ${y}` : `H${x}V${y}`;
  });
  const described = points.map(
    ({ name, x, y }) => `${name} from ${formatNumber(x)} ${xLabel} to ${formatNumber(y)}`,
  );
  return renderSvg(size, `${title}: ${described.join("; ")}.`, [
    ...renderAxes(frame, xLabel, { isContinuous: true }),
    ...(front.length > 1 ? [element("path", { class: "line stroke-1", d: steps.join("") })] : []),
    ...at.map(({ name, x, y, px, py, interval, isMarked }) =>
      element(
        "g",
        { class: isMarked ? "points stroke-2 fill-2" : "points stroke-1 fill-1" },
        element("title", {}, `${name}: ${formatNumber(y)} at ${formatNumber(x)} ${xLabel}`),
        interval && line("whisker", px, frame.y(interval[0]), px, frame.y(interval[1])),
        element("circle", { cx: pixel(px), cy: pixel(py), r: 4.5 }),
      ),
    ),
    ...labels.map(({ x, y, shown }) => text("label", x, y, shown)),
  ]);
}

interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

/** For each point the first free place to its right, left, above or below; where none is free, the right. */
function placeLabels(
  points: readonly (NamedPoint & { readonly px: number; readonly py: number })[],
  { frame, front }: { readonly frame: Frame; readonly front: readonly NamedPoint[] },
): { readonly x: number; readonly y: number; readonly shown: string }[] {
  const taken = [...points.flatMap((point) => drawnBoxes(point, frame)), ...frontBoxes(front, frame)];
  const { left, right, top, bottom } = frame;
  return points.map(({ name, px, py }) => {
    const shown = name.length > longestLabel ? `${name.slice(0, longestLabel - 1)}…` : name;
    const width = shown.length * letter;
    const places = [0, 1, -1, 2, -2, 3, -3, 4, -4, 5, -5, 6, -6].flatMap((row) => [
      { x: px + 9, y: py - lineHeight / 2 + row * lineHeight },
      { x: px - 9 - width, y: py - lineHeight / 2 + row * lineHeight },
    ]);
    const boxes = places.map(({ x, y }) => ({ x, y, width, height: lineHeight }));
    const isInside = (box: Box): boolean =>
      box.x >= left && box.x + box.width <= right + 8 && box.y >= top - 8 && box.y + box.height <= bottom;
    const free = boxes.find((box) => isInside(box) && !taken.some((other) => overlaps(box, other)));
    const box = free ?? boxes.find(isInside) ?? (boxes[0] as Box);
    taken.push(box);
    return { x: box.x, y: box.y + lineHeight - 4, shown };
  });
}

/** Where a point and its whisker are drawn. */
function drawnBoxes(
  { px, py, interval }: NamedPoint & { readonly px: number; readonly py: number },
  frame: Frame,
): Box[] {
  const dot = { x: px - 5, y: py - 5, width: 10, height: 10 };
  if (interval === undefined) return [dot];
  const [low, high] = [frame.y(interval[0]), frame.y(interval[1])];
  return [dot, { x: px - 2, y: high, width: 4, height: low - high }];
}

/** Where the line of the front runs. */
function frontBoxes(front: readonly NamedPoint[], frame: Frame): Box[] {
  return front.slice(1).flatMap((point, i) => {
    const before = front[i] as NamedPoint;
    const [x0, x1] = [frame.x(before.x), frame.x(point.x)];
    const [y0, y1] = [frame.y(before.y), frame.y(point.y)];
    return [
      { x: x0, y: y0 - 2, width: x1 - x0, height: 4 },
      { x: x1 - 2, y: y1, width: 4, height: Math.max(0, y0 - y1) },
    ];
  });
}

/** From zero up, unless all values lie close together far above it. */
function closeDomain(values: readonly number[]): Range {
  const whole = domainOf(values);
  const low = Math.min(...values);
  if (values.length === 0 || low < 0.4 * whole[1]) return whole;
  const room = 0.12 * (whole[1] - low);
  return [low - room, whole[1]];
}

function overlaps(a: Box, b: Box): boolean {
  return a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;
}
