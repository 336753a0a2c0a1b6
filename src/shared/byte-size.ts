/** Sizes of memory as people write them: bytes, or a number with a unit such as `2GB`. */

const units = {
  B: 1,
  kB: 1e3,
  MB: 1e6,
  GB: 1e9,
  TB: 1e12,
  KiB: 2 ** 10,
  MiB: 2 ** 20,
  GiB: 2 ** 30,
} as const;
type Unit = keyof typeof units;

/** A number, an optional space, a unit; the units are powers of 1,000, those with an i of 1,024. */
export const byteSizePattern = /^(\d+(?:\.\d+)?) ?(B|kB|MB|GB|TB|KiB|MiB|GiB)$/;

/** Bytes of a size that is a whole number of bytes or fits `byteSizePattern`; undefined for any other text. */
export function byteSize(size: number | string): number | undefined {
  if (typeof size === "number") return size;
  const [, number, unit] = byteSizePattern.exec(size) ?? [];
  return unit === undefined ? undefined : Math.floor(Number(number) * units[unit as Unit]);
}
