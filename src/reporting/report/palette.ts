/**
 * The colours of the report, once for each scheme. A test checks them: text and series (whose labels have their
 * colour) have a contrast of at least 4.5 to every surface, and series stay apart with red-green blindness.
 */
export interface Palette {
  readonly surface: string;
  readonly raised: string;
  readonly text: string;
  readonly muted: string;
  /** Lines of axes and borders; decoration only. */
  readonly rule: string;
  readonly good: string;
  readonly bad: string;
  /** Lines and areas, in the order of use. */
  readonly series: readonly [string, string, string, string, string, string];
}

export const light: Palette = {
  surface: "#fbfaf8",
  raised: "#ffffff",
  text: "#1c1d21",
  muted: "#5c5f69",
  rule: "#dddbd5",
  good: "#18713f",
  bad: "#b3311b",
  series: ["#1c4fb0", "#ae5200", "#1a7e60", "#84004c", "#644d00", "#575c67"],
};

export const dark: Palette = {
  surface: "#14161a",
  raised: "#1c1f25",
  text: "#e9e7e2",
  muted: "#a3a7b2",
  rule: "#353942",
  good: "#57c98a",
  bad: "#ff8a70",
  series: ["#4a94e4", "#d07a35", "#86e8c6", "#fa9ed7", "#dab72d", "#8b8e95"],
};

/** The palette as CSS custom properties, such as `--series-1`. */
export function paletteProperties(palette: Palette): string {
  const { series, ...named } = palette;
  return [
    ...Object.entries(named).map(([name, color]) => `--${name}: ${color};`),
    ...series.map((color, index) => `--series-${index + 1}: ${color};`),
  ].join(" ");
}
