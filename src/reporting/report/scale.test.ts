import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  domainOf,
  formatCount,
  formatNumber,
  formatShare,
  formatSigned,
  linearScale,
  ticks,
} from "./scale.ts";

describe("ticks", () => {
  it("are round numbers within the domain", () => {
    expect(ticks([0, 1.05], 4)).toEqual([0, 0.2, 0.4, 0.6, 0.8, 1]);
    expect(ticks([-0.3, 0.9], 4)).toEqual([-0.2, 0, 0.2, 0.4, 0.6, 0.8]);
    expect(ticks([1, 40], 5)).toEqual([10, 20, 30, 40]);
    expect(ticks([0, 0.0031], 4)).toEqual([0, 0.001, 0.002, 0.003]);
  });

  it("are whole numbers for steps, also of a short run", () => {
    expect(ticks([0, 2], 7, true)).toEqual([0, 1, 2]);
    expect(ticks([3, 3], 7, true)).toEqual([3]);
  });

  it("are few, ascending and inside, for any domain", () => {
    const offset = fc.double({ min: -1e3, max: 1e3, noNaN: true });
    fc.assert(
      fc.property(offset, fc.double({ min: 1e-6, max: 1e6, noNaN: true }), (start, extent) => {
        const low = start * extent;
        const found = ticks([low, low + extent], 4);
        expect(found.length).toBeLessThanOrEqual(9);
        expect([...found].sort((a, b) => a - b)).toEqual(found);
        for (const tick of found) {
          expect(tick).toBeGreaterThanOrEqual(low - extent * 1e-6);
          expect(tick).toBeLessThanOrEqual(low + extent * (1 + 1e-6));
        }
      }),
    );
  });
});

describe("scales", () => {
  it("map the ends of the domain to the ends of the range, and no extent to the middle", () => {
    const scale = linearScale([10, 20], [100, 0]);
    expect([scale(10), scale(15), scale(20)]).toEqual([100, 50, 0]);
    expect(linearScale([3, 3], [0, 100])(3)).toBe(50);
  });

  it("begin at zero unless values are negative, whatever is missing", () => {
    expect(domainOf([2, 4, Number.NaN])).toEqual([0, 4.2]);
    expect(domainOf([-1, 1])).toEqual([-1.05, 1.05]);
    expect(domainOf([0, 0])).toEqual([0, 1]);
    expect(domainOf([])).toEqual([0, 1]);
  });
});

describe("numbers", () => {
  it("are written for reading", () => {
    expect([0, 0.1 + 0.2, 12345.6, 0.00012, -0.5, Number.NaN].map(formatNumber)).toEqual([
      "0",
      "0.3",
      "12,346",
      "1.2e−4",
      "−0.5",
      "–",
    ]);
    expect([0.456, 1, Number.NaN].map(formatShare)).toEqual(["0.46", "1.00", "–"]);
    expect([1.5, 23.45, 130.4, 12345].map(formatCount)).toEqual(["1.50", "23.4", "130", "12,345"]);
    expect([0.5, -0.25, 0].map((value) => formatSigned(value))).toEqual(["+0.50", "−0.25", "0.00"]);
  });
});
