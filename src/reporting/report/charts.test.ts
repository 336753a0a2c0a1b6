import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { spread } from "./chart-frame.ts";
import { describeChart, lineChart, type Point, smooth, stackedChart } from "./charts.ts";

const size = { width: 340, height: 210 };
const points = (...values: readonly number[]): Point[] => values.map((y, x) => ({ x, y }));
const content = { title: "Reward", xLabel: "step" };

describe("a line chart", () => {
  it("draws each series in its colour and leaves a gap where there is no number", () => {
    const series = [
      { label: "reward", points: points(0, 1, Number.NaN, 1), color: 1, kind: "line" },
    ] as const;
    const { markup } = lineChart({ ...content, series }, size);
    const path = /class="line stroke-2" d="([^"]*)"/.exec(markup)?.[1] ?? "";
    expect(path.match(/M/g)).toHaveLength(2);
    expect(path.match(/L/g)).toHaveLength(1);
    // The point after the gap stands alone and is seen all the same.
    expect(path).toMatch(/m-1\.5 0h3$/);
    expect(path.match(/h3/g)).toHaveLength(1);
    expect(markup).not.toContain("NaN");
  });

  it("draws intervals at their values: higher is further up", () => {
    const series = [
      {
        label: "held-out",
        color: 0,
        kind: "points",
        points: [{ x: 0, y: 0.5, interval: [0.25, 1] as const }],
      },
    ] as const;
    const { markup } = lineChart({ ...content, series, yDomain: [0, 1] }, size);
    const [, y1, y2] = /class="whisker" x1="[^"]*" y1="([^"]*)" x2="[^"]*" y2="([^"]*)"/.exec(markup) ?? [];
    const center = Number(/cy="([^"]*)"/.exec(markup)?.[1]);
    expect(Number(y2)).toBe(14);
    expect(Number(y1) - center).toBeCloseTo((center - Number(y2)) / 2, 0);
  });

  it("labels lines where they end when there are several, and none when there is one", () => {
    const line = (label: string, color: number) =>
      ({ label, color, kind: "line", points: points(1, 2) }) as const;
    expect(lineChart({ ...content, series: [line("one", 0)] }, size).markup).not.toContain('class="label');
    const two = lineChart({ ...content, series: [line("one", 0), line("two", 1)] }, size).markup;
    expect(two.match(/class="label/g)).toHaveLength(2);
  });

  it("can be drawn of one point and of nothing at all", () => {
    const one = [{ label: "a", color: 0, kind: "line", points: points(3) }] as const;
    for (const series of [one, []])
      expect(lineChart({ ...content, series }, size).markup).not.toMatch(/NaN|Infinity/);
  });
});

describe("a stacked chart", () => {
  it("puts each area on top of the one before", () => {
    const series = [
      { label: "answer", color: 0, kind: "line", points: points(0.75, 0.5) },
      { label: "limit", color: 1, kind: "line", points: points(0.25, 0.5) },
    ] as const;
    const { markup } = stackedChart({ ...content, series, yDomain: [0, 1] }, size);
    const areas = [...markup.matchAll(/class="area[^"]*" d="M([^"]*)Z"/g)].map(
      ([, path]) => path?.split("L") ?? [],
    );
    expect(areas[0]?.slice(0, 2)).toEqual(areas[1]?.slice(2).reverse());
    expect(areas[1]?.[0]?.split(" ")[1]).toBe("14");
  });
});

describe("smoothing", () => {
  it("is the mean of a centred window, shorter at the ends", () => {
    expect(smooth(points(0, 3, 6, 9), 1).map(({ y }) => y)).toEqual([1.5, 3, 6, 7.5]);
  });

  it("averages nothing across a gap", () => {
    expect(smooth(points(1, 1, Number.NaN, 9, 9), 2).map(({ y }) => y)).toEqual([1, 1, Number.NaN, 9, 9]);
  });
});

describe("labels", () => {
  it("are moved apart, keep their order and stay inside when they fit", () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 200 }), { maxLength: 8 }), (wanted) => {
        const places = spread(wanted, 15, [0, 200]);
        const sorted = [...places].sort((a, b) => a - b);
        for (let i = 1; i < sorted.length; i++)
          expect((sorted[i] as number) - (sorted[i - 1] as number)).toBeGreaterThanOrEqual(15);
        for (const place of places) expect(place >= 0 && place <= 200).toBe(true);
        wanted.forEach((a, i) => {
          wanted.forEach((b, j) => {
            if (a < b) expect(places[i]).toBeLessThan(places[j] as number);
          });
        });
      }),
    );
  });

  it("stay where they want to be when there is room", () => {
    expect(spread([100, 20], 15, [0, 200])).toEqual([100, 20]);
  });
});

it("describes a chart in words for those who cannot see it", () => {
  const series = [
    { label: "reward", color: 0, kind: "line", points: points(Number.NaN, 0.25, 0.5) },
  ] as const;
  expect(describeChart("Learning curve", series)).toBe("Learning curve. reward: from 0.25 to 0.5.");
});
