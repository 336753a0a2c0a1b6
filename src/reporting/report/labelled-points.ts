/**
 * A chart of a few points that each have a name, with a line through some of them: what is worth having against what it
 * costs. A label stands beside its point where nothing else stands. Pure.
 */
import { line, makeFrame, pixel, renderAxes, renderSvg, type Size, text } from "./chart-frame.ts";
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
const letter = 6.6;
const lineHeight = 14;
const longestLabel = 22;

/** The chart; the description names every point with its values. */
export function namedPointsChart({ title, xLabel, points, front = [] }: PointsContent, size: Size): Markup {
  const domains = {
    x: domainOf(points.map(({ x }) => x)),
    y: domainOf(points.flatMap(({ y, interval }) => [y, ...(interval ?? [])])),
  };
  const frame = makeFrame(size, domains, []);
  const at = points.map((point) => ({ ...point, px: frame.x(point.x), py: frame.y(point.y) }));
  const labels = placeLabels(at, frame);
  const steps = front.map((point, i) => {
    const [x, y] = [pixel(frame.x(point.x)), pixel(frame.y(point.y))];
    return i === 0 ? `M${x} ${y}` : `H${x}V${y}`;
  });
  const described = points.map(
    ({ name, x, y }) => `${name} from ${formatNumber(x)} ${xLabel} to ${formatNumber(y)}`,
  );
  return renderSvg(size, `${title}: ${described.join("; ")}.`, [
    ...renderAxes(frame, xLabel),
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
  points: readonly { readonly name: string; readonly px: number; readonly py: number }[],
  {
    left,
    right,
    top,
    bottom,
  }: { readonly left: number; readonly right: number; readonly top: number; readonly bottom: number },
): { readonly x: number; readonly y: number; readonly shown: string }[] {
  const taken: Box[] = points.map(({ px, py }) => ({ x: px - 5, y: py - 5, width: 10, height: 10 }));
  return points.map(({ name, px, py }) => {
    const shown = name.length > longestLabel ? `${name.slice(0, longestLabel - 1)}…` : name;
    const width = shown.length * letter;
    const places = [0, 1, -1, 2, -2].flatMap((row) => [
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

function overlaps(a: Box, b: Box): boolean {
  return a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;
}
