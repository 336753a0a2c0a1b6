/**
 * Writes GGUF files, version 3, little-endian: magic, counts, metadata, tensor entries, then the tensors, each at a
 * multiple of the alignment. https://github.com/ggml-org/ggml/blob/master/docs/gguf.md. The reader is `gguf-header.ts`;
 * which metadata a model has is in `gguf-writer-model.ts`.
 */
import { assert } from "../errors.ts";
import { writeFileAtomic } from "../shared/files.ts";
import { ggufTypeNumber } from "./gguf-quantization.ts";
import { type GgufWrittenType, ggufEncodings } from "./gguf-writer-blocks.ts";
import { encodedLength, encodePieces } from "./tensor-encoding.ts";

/** A value of the metadata with the type it is stored as. */
export type GgufField =
  | { readonly type: "uint32" | "float32"; readonly value: number }
  | { readonly type: "bool"; readonly value: boolean }
  | { readonly type: "string"; readonly value: string }
  | { readonly type: "strings"; readonly value: readonly string[] }
  | { readonly type: "int32s"; readonly value: readonly number[] };

export interface GgufTensor {
  readonly name: string;
  /** Outermost first, as in PyTorch; the last is a multiple of the type's block. */
  readonly shape: readonly number[];
  readonly type: GgufWrittenType;
  /** The values, asked for when they are written and forgotten afterwards. */
  readonly values: () => Float32Array;
}

export interface GgufContents {
  readonly metadata: ReadonlyMap<string, GgufField>;
  readonly tensors: readonly GgufTensor[];
}

const alignment = 32;

/** Writes a file. Throws `FileError`, or the signal's reason. */
export async function writeGguf(path: string, contents: GgufContents, signal?: AbortSignal): Promise<void> {
  await writeFileAtomic(path, pieces(contents, signal));
}

function* pieces({ metadata, tensors }: GgufContents, signal?: AbortSignal): Iterable<Uint8Array> {
  const header = Buffer.concat([
    Buffer.from("GGUF", "latin1"),
    uint32(3),
    uint64(tensors.length),
    uint64(metadata.size),
    ...[...metadata].flatMap(([key, field]) => [text(key), fieldBytes(field)]),
    ...entries(tensors),
  ]);
  yield header;
  yield padding(header.length);
  for (const { name, shape, type, values } of tensors) {
    const data = values();
    assert(data.length === product(shape), `${name} has ${data.length} values, [${shape}] needs others`);
    yield* encodePieces(data, ggufEncodings[type], signal);
    yield padding(encodedLength(data.length, ggufEncodings[type]));
  }
}

/** What the header says of each tensor; dimensions innermost first. */
function entries(tensors: readonly GgufTensor[]): Buffer[] {
  let offset = 0;
  return tensors.map(({ name, shape, type }) => {
    const encoding = ggufEncodings[type];
    const row = shape.at(-1) ?? 1;
    assert(row % encoding.size === 0, `a row of ${name} has ${row} values, which are no ${type} blocks`);
    const entry = Buffer.concat([
      text(name),
      uint32(shape.length),
      ...[...shape].reverse().map(uint64),
      uint32(ggufTypeNumber(type)),
      uint64(offset),
    ]);
    const length = encodedLength(product(shape), encoding);
    offset += length + padding(length).length;
    return entry;
  });
}

function product(shape: readonly number[]): number {
  return shape.reduce((a, b) => a * b, 1);
}

function padding(length: number): Buffer {
  return Buffer.alloc((alignment - (length % alignment)) % alignment);
}

function fieldBytes(field: GgufField): Buffer {
  switch (field.type) {
    case "uint32":
      return Buffer.concat([uint32(4), uint32(field.value)]);
    case "float32":
      return Buffer.concat([uint32(6), float32(field.value)]);
    case "bool":
      return Buffer.concat([uint32(7), Buffer.of(field.value ? 1 : 0)]);
    case "string":
      return Buffer.concat([uint32(8), text(field.value)]);
    case "strings":
      return Buffer.concat([uint32(9), uint32(8), uint64(field.value.length), ...field.value.map(text)]);
    case "int32s":
      return Buffer.concat([
        uint32(9),
        uint32(5),
        uint64(field.value.length),
        Buffer.from(Int32Array.from(field.value).buffer),
      ]);
  }
}

function text(value: string): Buffer {
  const bytes = Buffer.from(value, "utf8");
  return Buffer.concat([uint64(bytes.length), bytes]);
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}

function uint64(value: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt(value));
  return bytes;
}

function float32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeFloatLE(value);
  return bytes;
}
