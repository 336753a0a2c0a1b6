/**
 * Numbers of two bytes as float32 and back: binary16 (IEEE 754) and bfloat16, the upper half of a float32. Little-endian.
 * What does not fit is rounded to the nearest, of two equally near to the even one, as PyTorch and NumPy do.
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

/** Encodes values as binary16, (2 n) bytes. Beyond 65,504 they become infinite, below 2^-24 zero. */
export function encodeFloat16(values: Float32Array): Uint8Array {
  const bits = new Uint32Array(values.buffer, values.byteOffset, values.length);
  const halves = new Uint16Array(values.length);
  for (let i = 0; i < halves.length; i++) halves[i] = halfBits(bits[i] as number, values[i] as number);
  return littleEndian(halves);
}

/** Encodes values as bfloat16, (2 n) bytes. */
export function encodeBfloat16(values: Float32Array): Uint8Array {
  const bits = new Uint32Array(values.buffer, values.byteOffset, values.length);
  const halves = new Uint16Array(values.length);
  for (let i = 0; i < halves.length; i++) {
    const all = bits[i] as number;
    const isNumber = (all & 0x7fffffff) <= 0x7f800000;
    // Adding just under one half of the last place, or one half where that place is odd, carries into it.
    halves[i] = isNumber ? (all + 0x7fff + ((all >>> 16) & 1)) >>> 16 : (all >>> 16) | 0x40;
  }
  return littleEndian(halves);
}

/** The bit pattern of the binary16 nearest to `value`, whose float32 pattern is `bits`. */
export function halfBits(bits: number, value: number): number {
  const sign = (bits >>> 16) & 0x8000;
  const magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return sign | 0x7e00;
  // 65,520 is half way between the largest binary16 and the next power of two.
  if (magnitude >= 0x477ff000) return sign | 0x7c00;
  if (magnitude < 0x38800000) return sign | roundHalfEven(Math.abs(value) * 2 ** 24);
  const rebiased = magnitude - 0x38000000;
  return sign | ((rebiased + 0xfff + ((rebiased >>> 13) & 1)) >>> 13);
}

function roundHalfEven(value: number): number {
  const floor = Math.floor(value);
  const rest = value - floor;
  return rest > 0.5 || (rest === 0.5 && floor % 2 === 1) ? floor + 1 : floor;
}

/** The bytes of 16-bit numbers; every machine that ONNX Runtime runs on is little-endian. */
function littleEndian(halves: Uint16Array): Uint8Array {
  return new Uint8Array(halves.buffer, halves.byteOffset, halves.byteLength);
}
