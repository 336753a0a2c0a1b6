/**
 * How weights are written: blocks of values as bytes, a piece at a time, so that a file is never in memory as a whole.
 * Plain floating point here, the block formats of GGUF in `gguf-writer-blocks.ts`; reading is in `tensor-file.ts`.
 */
import { encodeBfloat16, encodeFloat16 } from "./half-floats.ts";

/** How values of one type are stored: blocks of `size` values in `bytes` bytes. */
export interface BlockEncoding {
  readonly size: number;
  readonly bytes: number;
  /** The bytes of whole blocks. */
  readonly encode: (values: Float32Array) => Uint8Array;
}

export const floatTypes = ["F32", "F16", "BF16"] as const;
export type FloatType = (typeof floatTypes)[number];

export const floatEncodings: Readonly<Record<FloatType, BlockEncoding>> = {
  F32: { size: 1, bytes: 4, encode: ownBytes },
  F16: { size: 1, bytes: 2, encode: encodeFloat16 },
  BF16: { size: 1, bytes: 2, encode: encodeBfloat16 },
};

/** The array's own bytes, not a copy of them. */
function ownBytes({ buffer, byteOffset, byteLength }: Float32Array): Uint8Array {
  return new Uint8Array(buffer, byteOffset, byteLength);
}

/** Bytes of `count` values, which must be whole blocks. */
export function encodedLength(count: number, { size, bytes }: BlockEncoding): number {
  return (count / size) * bytes;
}

/** Values that are encoded at a time; a multiple of every block. */
const pieceValues = 1 << 20;

/** The bytes of all values, piece by piece. Throws the signal's reason between two pieces. */
export function* encodePieces(
  data: Float32Array,
  { encode }: BlockEncoding,
  signal?: AbortSignal,
): Iterable<Uint8Array> {
  for (let start = 0; start < data.length; start += pieceValues) {
    signal?.throwIfAborted();
    yield encode(data.subarray(start, start + pieceValues));
  }
}
