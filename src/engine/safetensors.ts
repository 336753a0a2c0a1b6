/**
 * Reads and writes safetensors files: an 8-byte little-endian length, a JSON header, then the raw values, which are F32,
 * F16 or BF16. https://github.com/huggingface/safetensors describes the format; as there, tensors
 * must cover the file from header to end without gap or overlap.
 */
import { z } from "zod";
import { assert, CheckpointError } from "../errors.ts";
import { writeFileAtomic } from "../shared/files.ts";
import { decodeBfloat16, decodeFloat16 } from "./half-floats.ts";
import type { Parameter } from "./parameters.ts";
import { encodedLength, encodePieces, type FloatType, floatEncodings } from "./tensor-encoding.ts";
import { OpenFile, type TensorEntry, type TensorSource } from "./tensor-file.ts";

const entrySchema = z.object({
  dtype: z.string(),
  shape: z.array(z.int().nonnegative()),
  data_offsets: z.tuple([z.int().nonnegative(), z.int().nonnegative()]),
});
const headerSchema = z.record(z.string(), z.unknown());
/** As in the reference implementation; a longer header is a sign of damage. */
const mostHeaderBytes = 100_000_000;

const valueBytes: Readonly<Record<string, number>> = { F32: 4, F16: 2, BF16: 2 };
const halves = { F16: decodeFloat16, BF16: decodeBfloat16 };

export interface SafetensorsOptions {
  /** How values are stored; default F32. */
  readonly dtype?: FloatType;
  /** Stops the writing between two pieces. */
  readonly signal?: AbortSignal;
}

/** A tensor to write, its values at once or piece by piece. */
export interface TensorValues {
  readonly shape: readonly number[];
  readonly data: Float32Array | AsyncIterable<Float32Array>;
}

/** Writes named float32 tensors. Throws `FileError`, the signal's reason, or what giving out the pieces throws. */
export async function writeSafetensors(
  path: string,
  tensors: ReadonlyMap<string, TensorValues>,
  { dtype = "F32", signal }: SafetensorsOptions = {},
): Promise<void> {
  let offset = 0;
  const header: Record<string, unknown> = { __metadata__: { format: "pt" } };
  for (const [name, { shape }] of tensors) {
    const bytes = encodedLength(countOf(shape), floatEncodings[dtype]);
    header[name] = { dtype, shape, data_offsets: [offset, offset + bytes] };
    offset += bytes;
  }
  const json = Buffer.from(JSON.stringify(header));
  const prefix = Buffer.alloc(8 + Math.ceil(json.length / 8) * 8, " ");
  prefix.writeBigUInt64LE(BigInt(prefix.length - 8), 0);
  json.copy(prefix, 8);
  await writeFileAtomic(path, chunks(prefix, tensors, { dtype, ...(signal && { signal }) }));
}

/** The file piece by piece. */
async function* chunks(
  prefix: Buffer,
  tensors: ReadonlyMap<string, TensorValues>,
  { dtype, signal }: SafetensorsOptions & { readonly dtype: FloatType },
): AsyncIterable<Uint8Array> {
  yield prefix;
  for (const { data } of tensors.values())
    for await (const piece of data instanceof Float32Array ? [data] : data)
      yield* encodePieces(piece, floatEncodings[dtype], signal);
}

function countOf(shape: readonly number[]): number {
  return shape.reduce((a, b) => a * b, 1);
}

/** Reads all tensors of a file as float32. Throws `CheckpointError` that names file and tensor. */
export async function readSafetensors(path: string): Promise<Map<string, Parameter>> {
  const file = await SafetensorsFile.open(path);
  try {
    const tensors = new Map<string, Parameter>();
    for (const name of file.tensors.keys()) tensors.set(name, await file.read(name));
    return tensors;
  } finally {
    await file.close();
  }
}

/** One open file; its header is checked as a whole before anything is read. */
export class SafetensorsFile implements TensorSource {
  readonly path: string;
  readonly tensors: ReadonlyMap<string, TensorEntry>;
  readonly bytes: number;
  readonly #file: OpenFile;

  private constructor(file: OpenFile, tensors: ReadonlyMap<string, TensorEntry>) {
    this.path = file.path;
    this.bytes = file.size;
    this.tensors = tensors;
    this.#file = file;
  }

  static async open(path: string): Promise<SafetensorsFile> {
    const file = await OpenFile.open(path);
    try {
      return new SafetensorsFile(file, await readHeader(file));
    } catch (error) {
      await file.close();
      throw error;
    }
  }

  async read(name: string): Promise<Parameter> {
    const entry = this.tensors.get(name);
    assert(entry, `${this.path} has no ${name}`);
    if (entry.dtype === "F32") return await this.#file.readFloats(entry);
    const decode = halves[entry.dtype as keyof typeof halves];
    return await this.#file.readValues(entry, { size: 1, bytes: 2, decode });
  }

  /** Fills `target` with values of an F32 tensor, from value `start` on. Throws `CheckpointError`, `FileError`. */
  async readInto(target: Float32Array, name: string, start: number): Promise<void> {
    const entry = this.tensors.get(name);
    assert(entry?.dtype === "F32", `${this.path} has no ${name} of type F32`);
    const bytes = new Uint8Array(target.buffer, target.byteOffset, target.byteLength);
    await this.#file.read(bytes, entry.start + start * target.BYTES_PER_ELEMENT);
  }

  async close(): Promise<void> {
    await this.#file.close();
  }
}

async function readHeader(file: OpenFile): Promise<Map<string, TensorEntry>> {
  const { path, size } = file;
  if (size < 8) throw damaged(path, `it has ${size} bytes, fewer than the 8 of its first field`);
  const first = Buffer.alloc(8);
  await file.read(first, 0);
  const length = first.readBigUInt64LE(0);
  if (length > BigInt(size - 8))
    throw damaged(path, `its header should have ${length} bytes, ${size - 8} are left`);
  if (length > BigInt(mostHeaderBytes)) throw damaged(path, `its header would have ${length} bytes`);
  const bytes = Buffer.alloc(Number(length));
  await file.read(bytes, 8);
  const start = 8 + bytes.length;
  const tensors = new Map<string, TensorEntry>();
  for (const [name, value] of Object.entries(parseHeader(path, bytes))) {
    if (name === "__metadata__") continue;
    const parsed = entrySchema.safeParse(value);
    if (!parsed.success) throw damaged(path, `the entry of ${name} is malformed`);
    tensors.set(name, checkEntry(path, { name, start, ...parsed.data }));
  }
  checkCover(file, tensors, start);
  return tensors;
}

function parseHeader(path: string, bytes: Buffer): Record<string, unknown> {
  let json: unknown;
  try {
    json = JSON.parse(bytes.toString("utf8"));
  } catch {
    throw damaged(path, "its header is not JSON");
  }
  const header = headerSchema.safeParse(json);
  if (!header.success) throw damaged(path, "its header is not an object");
  return header.data;
}

interface RawEntry extends z.infer<typeof entrySchema> {
  readonly name: string;
  /** Where values begin in the file. */
  readonly start: number;
}

function checkEntry(path: string, { name, start, dtype, shape, data_offsets }: RawEntry): TensorEntry {
  const [from, to] = data_offsets;
  const width = valueBytes[dtype];
  if (width === undefined) {
    throw new CheckpointError(
      `${path}: ${name} holds values of type ${dtype}, only F32, F16 and BF16 are supported; convert the model to one of them`,
    );
  }
  const count = countOf(shape);
  if (to - from !== count * width)
    throw damaged(
      path,
      `${name} has ${to - from} bytes; ${dtype} of shape [${shape}] needs ${count * width}`,
    );
  return { dtype, shape, start: start + from, end: start + to };
}

/** Tensors follow each other without gap or overlap up to the end of the file. */
function checkCover(
  { path, size }: OpenFile,
  tensors: ReadonlyMap<string, TensorEntry>,
  start: number,
): void {
  const ordered = [...tensors].sort(([, a], [, b]) => a.start - b.start || a.end - b.end);
  let end = start;
  let before = "the header";
  for (const [name, entry] of ordered) {
    if (entry.end > size) throw damaged(path, `it ends in the middle of ${name}`);
    if (entry.start < end) throw damaged(path, `${name} overlaps ${before}`);
    if (entry.start > end)
      throw damaged(path, `${entry.start - end} bytes between ${before} and ${name} belong to nothing`);
    end = entry.end;
    before = name;
  }
  if (end < size) throw damaged(path, `${size - end} bytes after ${before} belong to nothing`);
}

function damaged(path: string, problem: string): CheckpointError {
  return new CheckpointError(`${path} is no usable safetensors file: ${problem}; use another copy`);
}
