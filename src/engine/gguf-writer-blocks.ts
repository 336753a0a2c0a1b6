/**
 * The block formats of GGUF that are written, as `quantize_row_*_ref` of ggml's `ggml-quants.c` makes them: each step is
 * rounded to float32 as there, so that files are equal byte for byte (checked against the Python package `gguf`).
 * How blocks are laid out is said in `gguf-quantization.ts`, which reads them.
 */
import { halfBits } from "./half-floats.ts";
import { type BlockEncoding, floatEncodings } from "./tensor-encoding.ts";

export const ggufWrittenTypes = ["F32", "F16", "Q8_0", "Q4_0", "Q4_1"] as const;
export type GgufWrittenType = (typeof ggufWrittenTypes)[number];

export const ggufEncodings: Readonly<Record<GgufWrittenType, BlockEncoding>> = {
  F32: floatEncodings.F32,
  F16: floatEncodings.F16,
  Q8_0: { size: 32, bytes: 34, encode: (values) => encodeBlocks(values, 34, encodeQ8_0) },
  Q4_0: { size: 32, bytes: 18, encode: (values) => encodeBlocks(values, 18, encodeQ4_0) },
  Q4_1: { size: 32, bytes: 20, encode: (values) => encodeBlocks(values, 20, encodeQ4_1) },
};

const blockSize = 32;
const { fround } = Math;

/** Writes one block of 32 values from `start` on to `target` at `at`. */
type EncodeBlock = (
  values: Float32Array,
  start: number,
  place: { readonly target: Uint8Array; readonly at: number },
) => void;

function encodeBlocks(values: Float32Array, bytes: number, encode: EncodeBlock): Uint8Array {
  const target = new Uint8Array((values.length / blockSize) * bytes);
  for (let start = 0, at = 0; start < values.length; start += blockSize, at += bytes)
    encode(values, start, { target, at });
  return target;
}

/** d = largest |w| / 127; q = w / d, rounded half away from zero. */
const encodeQ8_0: EncodeBlock = (values, start, { target, at }) => {
  let largest = 0;
  for (let i = 0; i < blockSize; i++) largest = Math.max(largest, Math.abs(values[start + i] as number));
  const scale = fround(largest / 127);
  const inverse = scale === 0 ? 0 : fround(1 / scale);
  writeHalf(target, at, scale);
  for (let i = 0; i < blockSize; i++) {
    const q = fround((values[start + i] as number) * inverse);
    target[at + 2 + i] = Math.sign(q) * Math.floor(Math.abs(q) + 0.5);
  }
};

/** d = the value furthest from zero / -8, so that it is met exactly; q = w / d + 8. */
const encodeQ4_0: EncodeBlock = (values, start, { target, at }) => {
  let furthest = 0;
  for (let i = 0; i < blockSize; i++) {
    const value = values[start + i] as number;
    if (Math.abs(value) > Math.abs(furthest)) furthest = value;
  }
  const scale = fround(furthest / -8);
  const inverse = scale === 0 ? 0 : fround(1 / scale);
  writeHalf(target, at, scale);
  const nibble = (i: number): number =>
    Math.min(15, Math.trunc(fround(fround((values[start + i] as number) * inverse) + 8.5)));
  for (let i = 0; i < 16; i++) target[at + 2 + i] = nibble(i) | (nibble(16 + i) << 4);
};

/** m = least w; d = (largest - m) / 15; q = (w - m) / d. */
const encodeQ4_1: EncodeBlock = (values, start, { target, at }) => {
  let least = Number.POSITIVE_INFINITY;
  let largest = Number.NEGATIVE_INFINITY;
  for (let i = 0; i < blockSize; i++) {
    const value = values[start + i] as number;
    least = Math.min(least, value);
    largest = Math.max(largest, value);
  }
  const scale = fround(fround(largest - least) / 15);
  const inverse = scale === 0 ? 0 : fround(1 / scale);
  writeHalf(target, at, scale);
  writeHalf(target, at + 2, least);
  const nibble = (i: number): number => {
    const above = fround((values[start + i] as number) - least);
    return Math.min(15, Math.trunc(fround(fround(above * inverse) + 0.5)));
  };
  for (let i = 0; i < 16; i++) target[at + 4 + i] = nibble(i) | (nibble(16 + i) << 4);
};

const float = new Float32Array(1);
const floatBits = new Uint32Array(float.buffer);

function writeHalf(target: Uint8Array, at: number, value: number): void {
  float[0] = value;
  const bits = halfBits(floatBits[0] as number, value);
  target[at] = bits & 0xff;
  target[at + 1] = bits >> 8;
}
