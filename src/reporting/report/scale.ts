/** Linear scales, round tick values and the way numbers are written in the report. */

export type Range = readonly [low: number, high: number];

/** Maps `domain` onto `range`; a domain without extent maps to the middle. */
export function linearScale(domain: Range, range: Range): (value: number) => number {
  const extent = domain[1] - domain[0];
  if (extent === 0) return () => (range[0] + range[1]) / 2;
  return (value) => range[0] + ((value - domain[0]) / extent) * (range[1] - range[0]);
}

/**
 * About `count` values from `domain` that are 1, 2 or 5 times a power of ten apart, ascending, within the domain.
 * Integers only when `isInteger`.
 */
export function ticks(domain: Range, count: number, isInteger = false): number[] {
  const extent = domain[1] - domain[0];
  if (!(extent > 0) || !Number.isFinite(extent)) return [domain[0]];
  const raw = extent / count;
  const power = 10 ** Math.floor(Math.log10(raw));
  const ratio = raw / power;
  const factor = ratio > 7 ? 10 : ratio > 3.5 ? 5 : ratio > 1.5 ? 2 : 1;
  const step = isInteger ? Math.max(1, Math.round(factor * power)) : factor * power;
  const first = Math.ceil(domain[0] / step - 1e-9);
  const last = Math.floor(domain[1] / step + 1e-9);
  return Array.from({ length: last - first + 1 }, (_, index) => roundTo((first + index) * step, step));
}

/** A domain that holds all values, from zero up when they are not negative, a little above the largest. */
export function domainOf(values: readonly number[]): Range {
  const finite = values.filter(Number.isFinite);
  if (finite.length === 0) return [0, 1];
  const low = finite.reduce((a, b) => Math.min(a, b), 0);
  const high = finite.reduce((a, b) => Math.max(a, b), 0);
  return low === high ? [low, low + 1] : [low < 0 ? low * 1.05 : 0, high * 1.05];
}

/** A number for reading: three significant digits, thousands apart, exponents only for the extreme. */
export function formatNumber(value: number): string {
  if (!Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size >= 1000) return Math.round(value).toLocaleString("en-US").replace("-", "−");
  if (size > 0 && size < 0.001) return value.toExponential(1).replace("e-", "e−").replace(/^-/, "−");
  return String(Number(value.toPrecision(3))).replace("-", "−");
}

/** A share from 0 to 1 with two decimals. */
export function formatShare(value: number): string {
  return Number.isFinite(value) ? value.toFixed(2).replace("-", "−") : "–";
}

/** A mean of counts: two decimals below ten, one below a hundred, none above. */
export function formatCount(value: number): string {
  const size = Math.abs(value);
  if (size >= 1000 || !Number.isFinite(value)) return formatNumber(value);
  return value.toFixed(size < 10 ? 2 : size < 100 ? 1 : 0).replace("-", "−");
}

/** With a sign, for differences. */
export function formatSigned(value: number, format: (value: number) => string = formatShare): string {
  return `${value > 0 ? "+" : ""}${format(value)}`;
}

function roundTo(value: number, step: number): number {
  const digits = Math.max(0, 1 - Math.floor(Math.log10(step)));
  return Number(value.toFixed(Math.min(digits, 20)));
}
