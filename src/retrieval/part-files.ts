/**
 * The files an index folder is made of: bytes written once with their SHA-256 and checked when read back. Typed
 * arrays are stored as they lie in memory (little-endian on every platform that Node 20 supports but s390x).
 */
import { createHash, type Hash } from "node:crypto";
import { open } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { FileError } from "../errors.ts";
import { fileError } from "../shared/files.ts";

export const partSchema = z.strictObject({
  /** Name of the file within the folder. */
  file: z.string(),
  bytes: z.int().min(0),
  sha256: z.string(),
});
/** A file of the folder and what it must hold. */
export type Part = z.output<typeof partSchema>;

/** Reading and hashing go in pieces of this size: one call cannot read more than 2 GiB. */
const PIECE_BYTES = 1 << 26;

/** Writes the pieces one after the other and makes them durable. Throws `FileError`. */
export async function writePart(folder: string, file: string, pieces: Iterable<Uint8Array>): Promise<Part> {
  const hash = createHash("sha256");
  let bytes = 0;
  try {
    const handle = await open(join(folder, file), "wx");
    try {
      for (const piece of pieces) {
        await handle.appendFile(piece);
        hash.update(piece);
        bytes += piece.byteLength;
      }
      await handle.sync();
    } finally {
      await handle.close();
    }
  } catch (cause) {
    throw fileError(`cannot write ${join(folder, file)}`, cause);
  }
  return { file, bytes, sha256: hash.digest("hex") };
}

/** The bytes of a typed array, without a copy. */
export function bytesOf(array: Uint32Array | Float32Array): Uint8Array {
  return new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
}

/** Lines of UTF-8 in pieces of about a megabyte, each line with its end. */
export function* linePieces(lines: Iterable<string>): Generator<Uint8Array> {
  let pending: string[] = [];
  let length = 0;
  for (const line of lines) {
    pending.push(line, "\n");
    length += line.length;
    if (length < 1 << 20) continue;
    yield Buffer.from(pending.join(""));
    pending = [];
    length = 0;
  }
  if (pending.length > 0) yield Buffer.from(pending.join(""));
}

/** The content of a part in an `ArrayBuffer` of its own. Throws `FileError` when it is missing, short or altered. */
export async function readPart(folder: string, part: Part): Promise<ArrayBuffer> {
  const path = join(folder, part.file);
  const buffer = new ArrayBuffer(part.bytes);
  const hash = createHash("sha256");
  try {
    const handle = await open(path, "r");
    try {
      const { size } = await handle.stat();
      if (size !== part.bytes) throw damaged(path, `expected ${part.bytes} bytes, got ${size}`);
      for (let at = 0; at < part.bytes; ) at += await readPiece(handle, new Uint8Array(buffer, at), hash);
    } finally {
      await handle.close();
    }
  } catch (cause) {
    throw fileError(`cannot read ${path}`, cause);
  }
  if (hash.digest("hex") !== part.sha256) throw damaged(path, "its SHA-256 is not that of the index");
  return buffer;
}

async function readPiece(
  handle: Awaited<ReturnType<typeof open>>,
  target: Uint8Array,
  hash: Hash,
): Promise<number> {
  const piece = target.subarray(0, PIECE_BYTES);
  const { bytesRead } = await handle.read(piece, 0, piece.length);
  if (bytesRead === 0)
    throw new FileError("the file became shorter while it was read; build the index again");
  hash.update(piece.subarray(0, bytesRead));
  return bytesRead;
}

function damaged(path: string, what: string): FileError {
  return new FileError(`${path} is damaged: ${what}; build the index again`);
}
