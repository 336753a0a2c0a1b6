import { describe, expect, it } from "vitest";
import type { MetricRow } from "../metric-row.ts";
import { makeTimeline, partsOf, pointsOf } from "./timeline.ts";

const rows: MetricRow[] = [
  { stage: "warm-up", step: 1, "loss/value": 4 },
  { stage: "warm-up", step: 2, "loss/value": 3 },
  { stage: "grpo", step: 1, "loss/value": 0, "reward/mean": 0.5 },
  { stage: "grpo", step: 2, "loss/value": 1, "reward/mean": 0.75 },
];

describe("a timeline", () => {
  it("puts stages one after the other with a gap between their values", () => {
    const timeline = makeTimeline(rows, ["loss/value"]);
    expect(timeline.stages).toEqual([
      { label: "warm-up", x: 0 },
      { label: "grpo", x: 2 },
    ]);
    expect(pointsOf(timeline, "loss/value")).toEqual([
      { x: 1, y: 4 },
      { x: 2, y: 3 },
      { x: 3, y: Number.NaN },
      { x: 3, y: 0 },
      { x: 4, y: 1 },
    ]);
  });

  it("counts the steps of the one stage that has the values", () => {
    const timeline = makeTimeline(rows, ["reward/mean"]);
    expect(timeline.xLabel).toBe("step of grpo");
    expect(timeline.stages).toEqual([]);
    expect(pointsOf(timeline, "reward/mean").map(({ x }) => x)).toEqual([1, 2]);
  });

  it("places the end of the stage before at the start, and others nowhere", () => {
    const timeline = makeTimeline(rows, ["reward/mean"]);
    expect(timeline.place("grpo", 2)).toBe(2);
    expect(timeline.place("warm-up", 2)).toBe(0);
    expect(timeline.place("unknown", 1)).toBeUndefined();
  });

  it("gives parts of a whole equal x values, 0 where there is none", () => {
    expect(partsOf(makeTimeline(rows, ["loss/value"]), "reward/mean").map(({ y }) => y)).toEqual([
      0, 0, 0.5, 0.75,
    ]);
  });

  it("averages long runs in buckets", () => {
    const long = Array.from(
      { length: 1000 },
      (_, index): MetricRow => ({ stage: "grpo", step: index + 1, "reward/mean": index }),
    );
    const points = pointsOf(makeTimeline(long, ["reward/mean"]), "reward/mean");
    expect(points.length).toBeLessThanOrEqual(400);
    expect(points[0]).toEqual({ x: 2, y: 1 });
  });
});
