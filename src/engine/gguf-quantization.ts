/**
 * The block formats of GGUF that are read, as in ggml's `ggml-quants.c`: a block holds some weights as small integers
 * and what scales them. Each step is rounded to float32 as there, so that weights are equal bit for bit (checked
 * against the Python package `gguf`).
 *
 * Other formats (Q5_0, Q2_K, IQ…, BF16) are refused by whoever reads the header.
 */
import { assert } from "../errors.ts";
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

/** The number of a type that `ggufTypeName` knows. */
export function ggufTypeNumber(name: string): number {
  const entry = Object.entries(typeNames).find(([, known]) => known === name);
  assert(entry, `${name} is no type of ggml`);
  return Number(entry[0]);
}

const { fround } = Math;

/** How the supported types are stored, by name. */
export const ggufFormats: Readonly<Record<string, BlockFormat>> = {
  F32: { size: 1, bytes: 4, decode: decodeFloat32 },
  F16: { size: 1, bytes: 2, decode: decodeFloat16 },
  Q8_0: { size: 32, bytes: 34, decode: decodeQ8_0 },
  Q4_0: { size: 32, bytes: 18, decode: decodeQ4_0 },
  Q4_1: { size: 32, bytes: 20, decode: decodeQ4_1 },
  Q4_K: { size: 256, bytes: 144, decode: decodeQ4_K },
  Q5_K: { size: 256, bytes: 176, decode: decodeQ5_K },
  Q6_K: { size: 256, bytes: 210, decode: decodeQ6_K },
};

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
function decodeQ8_0(bytes: Uint8Array, target: Float32Array, start: number): void {
  for (let at = 0, to = start; at < bytes.length; at += 34, to += 32) {
    const scale = half(bytes, at);
    for (let i = 0; i < 32; i++) target[to + i] = scale * signed(bytes, at + 2 + i);
  }
}

/** w = d (q - 8); d (half), 16 bytes: low nibbles are weights 0-15, high ones 16-31. */
function decodeQ4_0(bytes: Uint8Array, target: Float32Array, start: number): void {
  for (let at = 0, to = start; at < bytes.length; at += 18, to += 32) {
    const scale = half(bytes, at);
    for (let i = 0; i < 16; i++) {
      const pair = byte(bytes, at + 2 + i);
      target[to + i] = scale * ((pair & 15) - 8);
      target[to + 16 + i] = scale * ((pair >> 4) - 8);
    }
  }
}

/** w = d q + m; d and m (halves), then as Q4_0. */
function decodeQ4_1(bytes: Uint8Array, target: Float32Array, start: number): void {
  for (let at = 0, to = start; at < bytes.length; at += 20, to += 32) {
    const scale = half(bytes, at);
    const least = half(bytes, at + 2);
    for (let i = 0; i < 16; i++) {
      const pair = byte(bytes, at + 4 + i);
      target[to + i] = fround(scale * (pair & 15)) + least;
      target[to + 16 + i] = fround(scale * (pair >> 4)) + least;
    }
  }
}

/** Scale (6 bits) of sub-block `j` of 8, packed into the 12 bytes at `at`; those of 4 to 7 have their high bits among the first. */
function packedScale(bytes: Uint8Array, at: number, j: number): number {
  if (j < 4) return byte(bytes, at + j) & 63;
  return (byte(bytes, at + j + 4) & 15) | ((byte(bytes, at + j - 4) >> 6) << 4);
}

/** Its minimum, likewise. */
function packedMinimum(bytes: Uint8Array, at: number, j: number): number {
  if (j < 4) return byte(bytes, at + j + 4) & 63;
  return (byte(bytes, at + j + 4) >> 4) | ((byte(bytes, at + j) >> 6) << 4);
}

/** w = d s q - m_d m over 8 sub-blocks of 32: d and m_d (halves), 12 bytes of s and m, 128 bytes of nibbles. */
function decodeQ4_K(bytes: Uint8Array, target: Float32Array, start: number): void {
  for (let at = 0, to = start; at < bytes.length; at += 144, to += 256) {
    const scale = half(bytes, at);
    const leastScale = half(bytes, at + 2);
    for (let j = 0; j < 8; j++) {
      const d = fround(scale * packedScale(bytes, at + 4, j));
      const m = fround(leastScale * packedMinimum(bytes, at + 4, j));
      const values = at + 16 + 32 * (j >> 1);
      const shift = 4 * (j & 1);
      for (let i = 0; i < 32; i++)
        target[to + 32 * j + i] = fround(d * ((byte(bytes, values + i) >> shift) & 15)) - m;
    }
  }
}

/** As Q4_K with a fifth bit of each weight in 32 bytes between scales and nibbles, one bit for each sub-block. */
function decodeQ5_K(bytes: Uint8Array, target: Float32Array, start: number): void {
  for (let at = 0, to = start; at < bytes.length; at += 176, to += 256) {
    const scale = half(bytes, at);
    const leastScale = half(bytes, at + 2);
    for (let j = 0; j < 8; j++) {
      const d = fround(scale * packedScale(bytes, at + 4, j));
      const m = fround(leastScale * packedMinimum(bytes, at + 4, j));
      const values = at + 48 + 32 * (j >> 1);
      const shift = 4 * (j & 1);
      for (let i = 0; i < 32; i++) {
        const high = ((byte(bytes, at + 16 + i) >> j) & 1) << 4;
        target[to + 32 * j + i] = fround(d * (((byte(bytes, values + i) >> shift) & 15) | high)) - m;
      }
    }
  }
}

/**
 * w = d s (q - 32) over 16 sub-blocks of 16: 128 bytes of low nibbles, 64 bytes of two high bits, 16 signed scales, d.
 * Each half of 128 weights has four runs of 32: run r takes nibbles r & 1 (of 64 bytes), shifted by r >> 1.
 */
function decodeQ6_K(bytes: Uint8Array, target: Float32Array, start: number): void {
  for (let at = 0, to = start; at < bytes.length; at += 210, to += 256) {
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
        target[to + 32 * run + i] = d * (q - 32);
      }
    }
  }
}
