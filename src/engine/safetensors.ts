/**
 * Reads and writes safetensors files: an 8-byte little-endian length, a JSON header, then the raw values.
 * float32 only; https://github.com/huggingface/safetensors describes the format.
 */
import { readFile } from "node:fs/promises";
import { z } from "zod";
import { CheckpointError } from "../errors.ts";
import { fileError, writeFileAtomic } from "../shared/files.ts";
import type { Parameter, ParameterSet } from "./parameters.ts";

const entrySchema = z.object({
  dtype: z.string(),
  shape: z.array(z.int().nonnegative()),
  data_offsets: z.tuple([z.int().nonnegative(), z.int().nonnegative()]),
});

const headerSchema = z.record(z.string(), z.unknown());

/** Writes named float32 arrays. Throws `FileError`. */
export async function writeSafetensors(path: string, tensors: ParameterSet): Promise<void> {
  let offset = 0;
  const header: Record<string, unknown> = { __metadata__: { format: "pt" } };
  for (const [name, { shape, data }] of tensors) {
    header[name] = { dtype: "F32", shape, data_offsets: [offset, offset + data.byteLength] };
    offset += data.byteLength;
  }
  const json = JSON.stringify(header);
  const headerBytes = Buffer.from(json.padEnd(Math.ceil(json.length / 8) * 8));
  const file = Buffer.alloc(8 + headerBytes.length + offset);
  file.writeBigUInt64LE(BigInt(headerBytes.length), 0);
  headerBytes.copy(file, 8);
  let position = 8 + headerBytes.length;
  for (const { data } of tensors.values()) {
    Buffer.from(data.buffer, data.byteOffset, data.byteLength).copy(file, position);
    position += data.byteLength;
  }
  await writeFileAtomic(path, file);
}

/** Reads a file of float32 arrays. Throws `CheckpointError` that says what is wrong with it. */
export async function readSafetensors(path: string): Promise<Map<string, Parameter>> {
  let file: Buffer;
  try {
    file = await readFile(path);
  } catch (cause) {
    throw fileError(`cannot read ${path}`, cause);
  }
  const { header, start } = readHeader(path, file);
  const tensors = new Map<string, Parameter>();
  for (const [name, value] of Object.entries(header)) {
    if (name === "__metadata__") continue;
    const parsed = entrySchema.safeParse(value);
    if (!parsed.success) throw damaged(path, `the entry of ${name} is malformed`);
    tensors.set(name, readTensor(path, file, { name, start, ...parsed.data }));
  }
  return tensors;
}

function readHeader(path: string, file: Buffer): { header: Record<string, unknown>; start: number } {
  if (file.length < 8)
    throw damaged(path, `it has ${file.length} bytes, fewer than the 8 of its first field`);
  const length = file.readBigUInt64LE(0);
  if (length > BigInt(file.length - 8)) {
    throw damaged(path, `its header should have ${length} bytes, ${file.length - 8} are left`);
  }
  const start = 8 + Number(length);
  let json: unknown;
  try {
    json = JSON.parse(file.toString("utf8", 8, start));
  } catch {
    throw damaged(path, "its header is not JSON");
  }
  const header = headerSchema.safeParse(json);
  if (!header.success) throw damaged(path, "its header is not an object");
  return { header: header.data, start };
}

interface Entry extends z.infer<typeof entrySchema> {
  readonly name: string;
  readonly start: number;
}

function readTensor(path: string, file: Buffer, entry: Entry): Parameter {
  const [from, to] = entry.data_offsets;
  if (entry.dtype !== "F32") {
    throw new CheckpointError(
      `${path}: ${entry.name} holds values of type ${entry.dtype}, only F32 is supported; convert the model to float32`,
    );
  }
  const count = entry.shape.reduce((a, b) => a * b, 1);
  if (to - from !== count * 4) {
    throw damaged(path, `${entry.name} has ${to - from} bytes; shape [${entry.shape}] needs ${count * 4}`);
  }
  if (entry.start + to > file.length) throw damaged(path, `it ends in the middle of ${entry.name}`);
  const data = new Float32Array(count);
  file.copy(Buffer.from(data.buffer), 0, entry.start + from, entry.start + to);
  return { shape: entry.shape, data };
}

function damaged(path: string, problem: string): CheckpointError {
  return new CheckpointError(`${path} is no usable safetensors file: ${problem}; use another copy`);
}
