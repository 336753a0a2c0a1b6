/**
 * How vectors lie on disk, row by row, little-endian: 32-bit floats, 16-bit floats, or one scale (32-bit float) and
 * a signed byte for each dimension. Searching is done in 32-bit floats, whatever is stored.
 */
import { z } from "zod";
import { halfValues, toHalf } from "./half.ts";

export const vectorTypeSchema = z.enum(["f32", "f16", "int8"]);
export type VectorType = z.output<typeof vectorTypeSchema>;

/** Bytes of one stored vector. */
export function rowBytes(type: VectorType, dimensions: number): number {
  return { f32: 4 * dimensions, f16: 2 * dimensions, int8: 4 + dimensions }[type];
}

/** The stored form of (rows × dimensions) vectors. */
export function packRows(vectors: Float32Array, dimensions: number, type: VectorType): Uint8Array {
  if (type === "f32") return new Uint8Array(vectors.buffer, vectors.byteOffset, vectors.byteLength);
  if (type === "f16") return new Uint8Array(Uint16Array.from(vectors, toHalf).buffer);
  const stride = rowBytes(type, dimensions);
  const rows = vectors.length / dimensions;
  const bytes = new Uint8Array(rows * stride);
  const view = new DataView(bytes.buffer);
  for (let row = 0; row < rows; row++) {
    const vector = vectors.subarray(row * dimensions, (row + 1) * dimensions);
    const scale = Math.fround(vector.reduce((most, x) => Math.max(most, Math.abs(x)), 0) / 127);
    view.setFloat32(row * stride, scale, true);
    if (scale > 0)
      for (let i = 0; i < dimensions; i++)
        view.setInt8(row * stride + 4 + i, Math.round((vector[i] as number) / scale));
  }
  return bytes;
}

/** Reads stored rows into `target` (rows × dimensions), which may be a part of a larger array. */
export function unpackRows(
  bytes: Uint8Array,
  target: Float32Array,
  dimensions: number,
  type: VectorType,
): void {
  const { buffer, byteOffset, byteLength } = bytes;
  if (type === "f32") new Uint8Array(target.buffer, target.byteOffset, target.byteLength).set(bytes);
  else if (type === "f16") unpackHalves(new Uint16Array(buffer, byteOffset, byteLength / 2), target);
  else unpackBytes(new DataView(buffer, byteOffset, byteLength), target, dimensions);
}

function unpackHalves(halves: Uint16Array, target: Float32Array): void {
  const values = halfValues();
  for (let i = 0; i < halves.length; i++) target[i] = values[halves[i] as number] as number;
}

function unpackBytes(view: DataView, target: Float32Array, dimensions: number): void {
  const stride = rowBytes("int8", dimensions);
  for (let row = 0; row * dimensions < target.length; row++) {
    const scale = view.getFloat32(row * stride, true);
    for (let i = 0; i < dimensions; i++)
      target[row * dimensions + i] = scale * view.getInt8(row * stride + 4 + i);
  }
}
