/**
 * The block formats of GGUF that are read, as in ggml's `ggml-quants.c`: a block holds some weights as small integers
 * and what scales them. Each step is rounded to float32 as there, so that weights are equal bit for bit (checked
 * against the Python package `gguf`).
 *
 * Other formats (Q5_0, Q2_K, IQ…, BF16) are refused by whoever reads the header.
 */
import { decodeFloat16, halfToFloat } from "./half-floats.ts";
import type { BlockFormat } from "./tensor-file.ts";

/** Names of ggml's types by number; gaps are types that were withdrawn. */
const typeNames: Readonly<Record<number, string>> = {
  0: "F32",
  1: "F16",
  2: "Q4_0",
  3: "Q4_1",
  6: "Q5_0",
  7: "Q5_1",
  8: "Q8_0",
  9: "Q8_1",
  10: "Q2_K",
  11: "Q3_K",
  12: "Q4_K",
  13: "Q5_K",
  14: "Q6_K",
  15: "Q8_K",
  16: "IQ2_XXS",
  17: "IQ2_XS",
  18: "IQ3_XXS",
  19: "IQ1_S",
  20: "IQ4_NL",
  21: "IQ3_S",
  22: "IQ2_S",
  23: "IQ4_XS",
  24: "I8",
  25: "I16",
  26: "I32",
  27: "I64",
  28: "F64",
  29: "IQ1_M",
  30: "BF16",
  34: "TQ1_0",
  35: "TQ2_0",
  39: "MXFP4",
};

export function ggufTypeName(type: number): string {
  return typeNames[type] ?? `number ${type}`;
}

const { fround } = Math;

/** How the supported types are stored, by name. */
export const ggufFormats: Readonly<Record<string, BlockFormat>> = {
  F32: { size: 1, bytes: 4, decode: decodeFloat32 },
  F16: { size: 1, bytes: 2, decode: decodeFloat16 },
  Q8_0: blocks(32, 34, decodeQ8_0),
  Q4_0: blocks(32, 18, decodeQ4_0),
  Q4_1: blocks(32, 20, decodeQ4_1),
  Q4_K: blocks(256, 144, decodeQ4_K),
  Q5_K: blocks(256, 176, decodeQ5_K),
  Q6_K: blocks(256, 210, decodeQ6_K),
};

type BlockDecoder = (bytes: Uint8Array, at: number, target: Float32Array, start: number) => void;

function blocks(size: number, bytes: number, decodeBlock: BlockDecoder): BlockFormat {
  return {
    size,
    bytes,
    decode: (data, target, start) => {
      for (let at = 0, to = start; at < data.length; at += bytes, to += size)
        decodeBlock(data, at, target, to);
    },
  };
}

function decodeFloat32(bytes: Uint8Array, target: Float32Array, start: number): void {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  for (let at = 0, to = start; at < bytes.length; at += 4, to++) target[to] = view.getFloat32(at, true);
}

function half(bytes: Uint8Array, at: number): number {
  return halfToFloat(byte(bytes, at) | (byte(bytes, at + 1) << 8));
}

function byte(bytes: Uint8Array, at: number): number {
  return bytes[at] as number;
}

function signed(bytes: Uint8Array, at: number): number {
  return (byte(bytes, at) << 24) >> 24;
}

/** w = d q; scale d (half), 32 signed bytes. */
function decodeQ8_0(bytes: Uint8Array, at: number, target: Float32Array, start: number): void {
  const scale = half(bytes, at);
  for (let i = 0; i < 32; i++) target[start + i] = scale * signed(bytes, at + 2 + i);
}

/** w = d (q - 8); d (half), 16 bytes: low nibbles are weights 0-15, high ones 16-31. */
function decodeQ4_0(bytes: Uint8Array, at: number, target: Float32Array, start: number): void {
  const scale = half(bytes, at);
  for (let i = 0; i < 16; i++) {
    const pair = byte(bytes, at + 2 + i);
    target[start + i] = scale * ((pair & 15) - 8);
    target[start + 16 + i] = scale * ((pair >> 4) - 8);
  }
}

/** w = d q + m; d and m (halves), then as Q4_0. */
function decodeQ4_1(bytes: Uint8Array, at: number, target: Float32Array, start: number): void {
  const scale = half(bytes, at);
  const least = half(bytes, at + 2);
  for (let i = 0; i < 16; i++) {
    const pair = byte(bytes, at + 4 + i);
    target[start + i] = fround(scale * (pair & 15)) + least;
    target[start + 16 + i] = fround(scale * (pair >> 4)) + least;
  }
}

/** Scale or minimum (6 bits) of sub-block `j` of 8, packed into 12 bytes; `shift` is 0 for scales, 4 for minima. */
function packed(bytes: Uint8Array, at: number, j: number, isMinimum: boolean): number {
  const offset = isMinimum ? 4 : 0;
  if (j < 4) return byte(bytes, at + offset + j) & 63;
  const low = isMinimum ? byte(bytes, at + 4 + j) >> 4 : byte(bytes, at + 4 + j) & 15;
  return low | ((byte(bytes, at + offset + j - 4) >> 6) << 4);
}

/** w = d s q - m_d m over 8 sub-blocks of 32: d and m_d (halves), 12 bytes of s and m, 128 bytes of nibbles. */
function decodeQ4_K(bytes: Uint8Array, at: number, target: Float32Array, start: number): void {
  const scale = half(bytes, at);
  const leastScale = half(bytes, at + 2);
  for (let j = 0; j < 8; j++) {
    const d = fround(scale * packed(bytes, at + 4, j, false));
    const m = fround(leastScale * packed(bytes, at + 4, j, true));
    const values = at + 16 + 32 * (j >> 1);
    const shift = 4 * (j & 1);
    for (let i = 0; i < 32; i++)
      target[start + 32 * j + i] = fround(d * ((byte(bytes, values + i) >> shift) & 15)) - m;
  }
}

/** As Q4_K with a fifth bit of each weight in 32 bytes between scales and nibbles, one bit for each sub-block. */
function decodeQ5_K(bytes: Uint8Array, at: number, target: Float32Array, start: number): void {
  const scale = half(bytes, at);
  const leastScale = half(bytes, at + 2);
  for (let j = 0; j < 8; j++) {
    const d = fround(scale * packed(bytes, at + 4, j, false));
    const m = fround(leastScale * packed(bytes, at + 4, j, true));
    const values = at + 48 + 32 * (j >> 1);
    const shift = 4 * (j & 1);
    for (let i = 0; i < 32; i++) {
      const high = ((byte(bytes, at + 16 + i) >> j) & 1) << 4;
      target[start + 32 * j + i] = fround(d * (((byte(bytes, values + i) >> shift) & 15) | high)) - m;
    }
  }
}

/**
 * w = d s (q - 32) over 16 sub-blocks of 16: 128 bytes of low nibbles, 64 bytes of two high bits, 16 signed scales, d.
 * Each half of 128 weights has four runs of 32: run r takes nibbles r & 1 (of 64 bytes), shifted by r >> 1.
 */
function decodeQ6_K(bytes: Uint8Array, at: number, target: Float32Array, start: number): void {
  const scale = half(bytes, at + 208);
  for (let run = 0; run < 8; run++) {
    const inner = run & 3;
    const part = run >> 2;
    const low = at + 64 * part + 32 * (inner & 1);
    const high = at + 128 + 32 * part;
    for (let i = 0; i < 32; i++) {
      const nibble = (byte(bytes, low + i) >> (4 * (inner >> 1))) & 15;
      const q = nibble | (((byte(bytes, high + i) >> (2 * inner)) & 3) << 4);
      const d = fround(scale * signed(bytes, at + 192 + 2 * run + (i >> 4)));
      target[start + 32 * run + i] = d * (q - 32);
    }
  }
}
