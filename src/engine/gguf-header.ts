/**
 * The header of a GGUF file, version 3, little-endian: magic, counts, metadata, tensor entries.
 * https://github.com/ggml-org/ggml/blob/master/docs/gguf.md. Every length is checked against the file before it is
 * believed. Not covered: older versions, big-endian files, files split in several.
 */
import { CheckpointError } from "../errors.ts";
import { ggufFormats, ggufTypeName } from "./gguf-quantization.ts";
import type { OpenFile, TensorEntry } from "./tensor-file.ts";

/** Metadata values; 64-bit integers beyond 2^53 lose their last bits, which no known key needs. */
export type GgufValue = number | boolean | string | readonly GgufValue[];

export interface GgufHeader {
  readonly metadata: ReadonlyMap<string, GgufValue>;
  readonly tensors: ReadonlyMap<string, TensorEntry>;
}

const version = 3;
const firstWindow = 8 << 20;

/** Reads and checks the header. Throws `CheckpointError` that names the file and what is wrong. */
export async function readGgufHeader(file: OpenFile): Promise<GgufHeader> {
  // The header's length is written nowhere: read a part, and twice as much as long as it does not suffice.
  for (let length = Math.min(firstWindow, file.size); ; length = Math.min(2 * length, file.size)) {
    const bytes = Buffer.allocUnsafe(length);
    await file.read(bytes, 0);
    try {
      return parseHeader(new Cursor(file, bytes));
    } catch (error) {
      if (!(error instanceof EndOfWindow) || length === file.size) throw damagedBy(file, error);
    }
  }
}

/** The header goes on beyond what was read of the file. */
class EndOfWindow extends Error {}

function damagedBy(file: OpenFile, error: unknown): unknown {
  return error instanceof EndOfWindow ? damaged(file.path, "it ends in the middle of its header") : error;
}

export function damaged(path: string, problem: string): CheckpointError {
  return new CheckpointError(`${path} is no usable GGUF file: ${problem}; use another copy`);
}

/** Reads values one after the other out of the first bytes of a file. */
class Cursor {
  readonly file: OpenFile;
  readonly #bytes: Buffer;
  #position = 0;

  constructor(file: OpenFile, bytes: Buffer) {
    this.file = file;
    this.#bytes = bytes;
  }

  get position(): number {
    return this.#position;
  }

  take(count: number): Buffer {
    if (count > this.file.size - this.#position)
      throw damaged(this.file.path, `a field of ${count} bytes at byte ${this.#position} exceeds the file`);
    if (this.#position + count > this.#bytes.length) throw new EndOfWindow();
    const part = this.#bytes.subarray(this.#position, this.#position + count);
    this.#position += count;
    return part;
  }

  uint32(): number {
    return this.take(4).readUInt32LE();
  }

  uint64(): number {
    return Number(this.take(8).readBigUInt64LE());
  }

  string(): string {
    return this.take(this.uint64()).toString("utf8");
  }

  /** How many items follow, each of at least `leastBytes`. */
  count(what: string, leastBytes: number): number {
    const count = this.uint64();
    if (count * leastBytes > this.file.size - this.#position)
      throw damaged(this.file.path, `it claims ${count} ${what}, more than fit into the file`);
    return count;
  }
}

const arrayType = 9;
const scalars: Readonly<Record<number, { bytes: number; read: (cursor: Cursor) => GgufValue }>> = {
  0: { bytes: 1, read: (cursor) => cursor.take(1).readUInt8() },
  1: { bytes: 1, read: (cursor) => cursor.take(1).readInt8() },
  2: { bytes: 2, read: (cursor) => cursor.take(2).readUInt16LE() },
  3: { bytes: 2, read: (cursor) => cursor.take(2).readInt16LE() },
  4: { bytes: 4, read: (cursor) => cursor.uint32() },
  5: { bytes: 4, read: (cursor) => cursor.take(4).readInt32LE() },
  6: { bytes: 4, read: (cursor) => cursor.take(4).readFloatLE() },
  7: { bytes: 1, read: (cursor) => cursor.take(1).readUInt8() !== 0 },
  8: { bytes: 8, read: (cursor) => cursor.string() },
  10: { bytes: 8, read: (cursor) => cursor.uint64() },
  11: { bytes: 8, read: (cursor) => Number(cursor.take(8).readBigInt64LE()) },
  12: { bytes: 8, read: (cursor) => cursor.take(8).readDoubleLE() },
};

function parseHeader(cursor: Cursor): GgufHeader {
  const { path } = cursor.file;
  if (cursor.file.size < 24)
    throw damaged(path, `it has ${cursor.file.size} bytes, fewer than its header needs`);
  if (cursor.take(4).toString("latin1") !== "GGUF") throw damaged(path, "it does not start with GGUF");
  const found = cursor.uint32();
  if (found !== version)
    throw new CheckpointError(
      `${path} is a GGUF file of version ${found}, only version ${version} is supported; convert the model anew`,
    );
  const tensorCount = cursor.count("tensors", 24);
  const metadataCount = cursor.count("fields of metadata", 13);
  const metadata = new Map<string, GgufValue>();
  for (let i = 0; i < metadataCount; i++) {
    const key = cursor.string();
    if (metadata.has(key)) throw damaged(path, `it has two fields ${key}`);
    metadata.set(key, readValue(cursor, key, cursor.uint32()));
  }
  return { metadata, tensors: readEntries(cursor, tensorCount, alignmentOf(path, metadata)) };
}

function readValue(cursor: Cursor, key: string, type: number): GgufValue {
  const scalar = scalars[type];
  if (scalar) return scalar.read(cursor);
  if (type !== arrayType) throw damaged(cursor.file.path, `${key} has a value of the unknown type ${type}`);
  const itemType = cursor.uint32();
  const item = scalars[itemType];
  if (!item) throw damaged(cursor.file.path, `${key} is an array of the unknown type ${itemType}`);
  const count = cursor.count(`items of ${key}`, item.bytes);
  return Array.from({ length: count }, () => item.read(cursor));
}

function alignmentOf(path: string, metadata: ReadonlyMap<string, GgufValue>): number {
  const alignment = metadata.get("general.alignment") ?? 32;
  if (typeof alignment === "number" && alignment > 0 && alignment % 8 === 0) return alignment;
  throw damaged(path, `general.alignment is ${JSON.stringify(alignment)}, not a multiple of 8`);
}

interface RawEntry {
  readonly name: string;
  readonly shape: readonly number[];
  readonly type: number;
  readonly offset: number;
}

function readEntries(cursor: Cursor, count: number, alignment: number): Map<string, TensorEntry> {
  const raw = Array.from({ length: count }, () => readEntry(cursor));
  const start = Math.ceil(cursor.position / alignment) * alignment;
  const tensors = new Map<string, TensorEntry>();
  for (const entry of raw) {
    if (tensors.has(entry.name)) throw damaged(cursor.file.path, `it has two tensors ${entry.name}`);
    tensors.set(entry.name, placeEntry(cursor.file.path, entry, { start, alignment }));
  }
  checkPlaces(cursor.file, tensors);
  return tensors;
}

/** Dimensions are stored innermost first. */
function readEntry(cursor: Cursor): RawEntry {
  const name = cursor.string();
  const rank = cursor.uint32();
  if (rank > 4) throw damaged(cursor.file.path, `${name} has ${rank} dimensions, at most 4 were expected`);
  const shape = Array.from({ length: rank }, () => cursor.uint64()).reverse();
  return { name, shape, type: cursor.uint32(), offset: cursor.uint64() };
}

function placeEntry(
  path: string,
  { name, shape, type, offset }: RawEntry,
  data: { readonly start: number; readonly alignment: number },
): TensorEntry {
  const dtype = ggufTypeName(type);
  const format = ggufFormats[dtype];
  if (!format)
    throw new CheckpointError(
      `${path}: ${name} holds values of type ${dtype}, only ${Object.keys(ggufFormats).join(", ")} are supported; convert the model to one of them`,
    );
  const row = shape.at(-1) ?? 1;
  if (row % format.size !== 0)
    throw damaged(
      path,
      `a row of ${name} has ${row} values, no multiple of the ${format.size} of a ${dtype} block`,
    );
  if (offset % data.alignment !== 0) throw damaged(path, `${name} lies at ${offset}, which is not aligned`);
  const values = shape.reduce((a, b) => a * b, 1);
  const start = data.start + offset;
  return { dtype, shape, start, end: start + (values / format.size) * format.bytes };
}

function checkPlaces({ path, size }: OpenFile, tensors: ReadonlyMap<string, TensorEntry>): void {
  const ordered = [...tensors].sort(([, a], [, b]) => a.start - b.start || a.end - b.end);
  let end = 0;
  let before = "";
  for (const [name, entry] of ordered) {
    if (!(entry.end <= size)) throw damaged(path, `it has ${size} bytes; ${name} would end at ${entry.end}`);
    if (entry.start < end) throw damaged(path, `${name} overlaps ${before}`);
    end = entry.end;
    before = name;
  }
}
