/**
 * The x axis of a chart over a run: stages follow each other, each with its own steps. Long runs are thinned, so
 * that the report stays small.
 */
import type { MetricKey } from "../metric-keys.ts";
import type { MetricRow } from "../metric-row.ts";
import type { StageMark } from "./chart-frame.ts";
import type { Point } from "./charts.ts";

/** Points a line has at most; longer runs are averaged in buckets. */
const maxPoints = 400;

export interface Timeline {
  readonly rows: readonly { readonly x: number; readonly row: MetricRow }[];
  readonly stages: readonly StageMark[];
  readonly xLabel: string;
  /** The x of a place in the run; the stage before the first one shown ends at 0, others have no place. */
  readonly place: (stage: string, step: number) => number | undefined;
}

/** The rows that have any of `keys`, with their stages one after the other. */
export function makeTimeline(rows: readonly MetricRow[], keys: readonly MetricKey[]): Timeline {
  const kept = rows.filter((row) => keys.some((key) => row[key] !== undefined));
  const lengths = new Map<string, number>();
  for (const { stage, step } of kept) lengths.set(stage, Math.max(step, lengths.get(stage) ?? 0));
  const starts = new Map<string, number>();
  let start = 0;
  for (const [stage, length] of lengths) {
    starts.set(stage, start);
    start += length;
  }
  const names = [...starts.keys()];
  const allNames = [...new Set(rows.map(({ stage }) => stage))];
  const previous = allNames[allNames.indexOf(names[0] ?? "") - 1];
  const place = (stage: string, step: number): number | undefined => {
    const from = starts.get(stage);
    if (from !== undefined) return from + step;
    return stage === previous ? 0 : undefined;
  };
  return {
    rows: kept.map((row) => ({ row, x: place(row.stage, row.step) as number })),
    stages: names.length > 1 ? [...starts].map(([label, x]) => ({ label, x })) : [],
    xLabel: names.length === 1 ? `step of ${names[0]}` : "step, all stages",
    place,
  };
}

/** The values of `key` where rows have it, with a gap between stages. */
export function pointsOf(timeline: Timeline, key: MetricKey): Point[] {
  const stages = [...new Set(timeline.rows.map(({ row }) => row.stage))];
  const parts = stages.map((stage) =>
    thin(
      timeline.rows.flatMap(({ x, row }) =>
        row.stage !== stage || row[key] === undefined ? [] : [{ x, y: row[key] }],
      ),
    ),
  );
  return parts
    .filter((part) => part.length > 0)
    .flatMap((part, index) => (index === 0 ? part : [{ x: part[0]?.x ?? 0, y: Number.NaN }, ...part]));
}

/** The values of `key` in every row, 0 where a row has none: parts that are stacked have equal x values. */
export function partsOf(timeline: Timeline, key: MetricKey): Point[] {
  return thin(timeline.rows.map(({ x, row }) => ({ x, y: row[key] ?? 0 })));
}

/** At most `maxPoints` points: means of equally long buckets. */
function thin(points: readonly Point[]): Point[] {
  const size = Math.ceil(points.length / maxPoints);
  if (size <= 1) return [...points];
  return Array.from({ length: Math.ceil(points.length / size) }, (_, index) => {
    const bucket = points.slice(index * size, (index + 1) * size);
    const mean = (pick: (point: Point) => number): number =>
      bucket.reduce((sum, point) => sum + pick(point), 0) / bucket.length;
    return { x: mean(({ x }) => x), y: mean(({ y }) => y) };
  });
}
