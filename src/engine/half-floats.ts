/**
 * Numbers of two bytes as float32: binary16 (IEEE 754) and bfloat16, the upper half of a float32. Little-endian.
 * Reading only: Forager computes and writes in float32.
 */

/** The float32 of each binary16 bit pattern, made once. */
let halfTable: Float32Array | undefined;

/** The value of a binary16 bit pattern; exact. */
export function halfToFloat(bits: number): number {
  halfTable ??= Float32Array.from({ length: 1 << 16 }, (_, pattern) => decodeHalf(pattern));
  return halfTable[bits] as number;
}

/** sign (1 bit), exponent (5, bias 15), fraction (10); exponent 0 is subnormal, 31 infinite or no number. */
function decodeHalf(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 0x1f;
  const fraction = bits & 0x3ff;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  if (exponent === 31) return fraction === 0 ? sign * Number.POSITIVE_INFINITY : Number.NaN;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

/** Decodes binary16 values of `bytes` (2 n) into `target` from `start` on. */
export function decodeFloat16(bytes: Uint8Array, target: Float32Array, start: number): void {
  for (let i = 0, at = start; i + 1 < bytes.length; i += 2, at++) {
    target[at] = halfToFloat((bytes[i] as number) | ((bytes[i + 1] as number) << 8));
  }
}

/** Decodes bfloat16 values of `bytes` (2 n) into `target` from `start` on. */
export function decodeBfloat16(bytes: Uint8Array, target: Float32Array, start: number): void {
  const bits = new Uint32Array(target.buffer, target.byteOffset, target.length);
  for (let i = 0, at = start; i + 1 < bytes.length; i += 2, at++) {
    bits[at] = (((bytes[i] as number) | ((bytes[i + 1] as number) << 8)) << 16) >>> 0;
  }
}
