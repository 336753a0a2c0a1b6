/** 16-bit floats (IEEE 754 binary16) by hand: Node 20 has no `Float16Array`. Rounds to nearest, ties to even. */

const floats = new Float32Array(1);
const bits = new Uint32Array(floats.buffer);

/** The 16 bits of the half nearest to `value`; too large becomes infinity, NaN stays NaN. */
export function toHalf(value: number): number {
  floats[0] = value;
  const word = bits[0] as number;
  const sign = (word >>> 16) & 0x8000;
  const magnitude = word & 0x7fffffff;
  if (magnitude >= 0x7f800000) return sign | (magnitude > 0x7f800000 ? 0x7e00 : 0x7c00);
  if (magnitude >= 0x477ff000) return sign | 0x7c00;
  if (magnitude >= 0x38800000) return sign | roundShift(magnitude - 0x38000000, 13);
  if (magnitude <= 0x33000000) return sign;
  const shift = 126 - (magnitude >>> 23);
  return sign | roundShift((magnitude & 0x7fffff) | 0x800000, shift);
}

function roundShift(value: number, shift: number): number {
  const kept = value >>> shift;
  const rest = value - kept * 2 ** shift;
  const half = 2 ** (shift - 1);
  return rest > half || (rest === half && (kept & 1) === 1) ? kept + 1 : kept;
}

let table: Float32Array | undefined;

/** The value of every half by its 16 bits; made once. */
export function halfValues(): Float32Array {
  table ??= Float32Array.from({ length: 65_536 }, (_, half) => fromHalf(half));
  return table;
}

function fromHalf(half: number): number {
  const sign = half & 0x8000 ? -1 : 1;
  const exponent = (half >> 10) & 31;
  const fraction = half & 1023;
  if (exponent === 31) return fraction === 0 ? sign * Number.POSITIVE_INFINITY : Number.NaN;
  return sign * (exponent === 0 ? fraction * 2 ** -24 : (1024 + fraction) * 2 ** (exponent - 25));
}
