import { describe, expect, it } from "vitest";
import { dark, light } from "./palette.ts";

type Rgb = readonly [number, number, number];

/** Linear-light components of `#rrggbb` (IEC 61966-2-1). */
function linearRgb(color: string): Rgb {
  const part = (start: number): number => {
    const value = Number.parseInt(color.slice(start, start + 2), 16) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  };
  return [part(1), part(3), part(5)];
}

/** Contrast ratio of WCAG 2.2. */
function contrast(a: string, b: string): number {
  const luminance = ([r, g, b]: Rgb): number => 0.2126 * r + 0.7152 * g + 0.0722 * b;
  const [low, high] = [luminance(linearRgb(a)), luminance(linearRgb(b))].sort((x, y) => x - y) as [
    number,
    number,
  ];
  return (high + 0.05) / (low + 0.05);
}

/** Full deuteranopia and protanopia (Machado, Oliveira, Fernandes 2009, table of severity 1.0). */
const visions: Readonly<Record<string, readonly [Rgb, Rgb, Rgb]>> = {
  full: [
    [1, 0, 0],
    [0, 1, 0],
    [0, 0, 1],
  ],
  deuteranopia: [
    [0.367322, 0.860646, -0.227968],
    [0.280085, 0.672501, 0.047413],
    [-0.01182, 0.04294, 0.968881],
  ],
  protanopia: [
    [0.152286, 1.052583, -0.204868],
    [0.114503, 0.786281, 0.099216],
    [-0.003882, -0.048116, 1.051998],
  ],
};

/** OKLab coordinates (Ottosson 2020) as seen with `vision`. */
function oklab(color: string, vision: readonly [Rgb, Rgb, Rgb]): Rgb {
  const rgb = linearRgb(color);
  const dot = (row: Rgb, v: Rgb): number => row[0] * v[0] + row[1] * v[1] + row[2] * v[2];
  const seen = vision.map((row) => Math.min(1, Math.max(0, dot(row, rgb)))) as unknown as Rgb;
  const cone = [
    [0.4122214708, 0.5363325363, 0.0514459929],
    [0.2119034982, 0.6806995451, 0.1073969566],
    [0.0883024619, 0.2817188376, 0.6299787005],
  ].map((row) => Math.cbrt(dot(row as unknown as Rgb, seen))) as unknown as Rgb;
  return [
    dot([0.2104542553, 0.793617785, -0.0040720468], cone),
    dot([1.9779984951, -2.428592205, 0.4505937099], cone),
    dot([0.0259040371, 0.7827717662, -0.808675766], cone),
  ];
}

describe.each(Object.entries({ light, dark }))("the %s palette", (_name, palette) => {
  it("has text that can be read on every surface", () => {
    for (const surface of [palette.surface, palette.raised])
      for (const text of [palette.text, palette.muted, palette.good, palette.bad])
        expect(contrast(text, surface)).toBeGreaterThanOrEqual(4.5);
  });

  it("has series whose labels, in the colour of the series, can be read on every surface", () => {
    for (const surface of [palette.surface, palette.raised])
      for (const color of palette.series) expect(contrast(color, surface)).toBeGreaterThanOrEqual(4.5);
  });

  it.each(Object.entries(visions))("keeps series apart with %s colour vision", (_vision, matrix) => {
    palette.series.forEach((a, i) => {
      for (const b of palette.series.slice(i + 1)) {
        const [p, q] = [oklab(a, matrix), oklab(b, matrix)];
        // 0.06 is some three times the difference that is just noticeable (0.02) in OKLab.
        expect(Math.hypot(p[0] - q[0], p[1] - q[1], p[2] - q[2]), `${a} and ${b}`).toBeGreaterThan(0.06);
      }
    });
  });
});
