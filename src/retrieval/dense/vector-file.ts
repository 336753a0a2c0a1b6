/** The file of vectors of a finished folder: hashed once when it is whole, checked and read in pieces that fit into memory. */
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { open } from "node:fs/promises";
import { join } from "node:path";
import { FileError } from "../../errors.ts";
import { fileError } from "../../shared/files.ts";
import type { Part } from "../part-files.ts";
import { rowBytes, unpackRows, type VectorType } from "./vector-storage.ts";

/** Size and SHA-256 of a file that is there. Throws `FileError`. */
export async function hashPart(folder: string, file: string): Promise<Part> {
  const hash = createHash("sha256");
  let bytes = 0;
  try {
    for await (const piece of createReadStream(join(folder, file), { highWaterMark: 1 << 20 })) {
      hash.update(piece as Buffer);
      bytes += (piece as Buffer).length;
    }
  } catch (cause) {
    throw fileError(`cannot read ${join(folder, file)}`, cause);
  }
  return { file, bytes, sha256: hash.digest("hex") };
}

/** Checks a file against what the manifest says. Throws `FileError` when it is missing, short or altered. */
export async function checkPart(folder: string, part: Part): Promise<void> {
  const { bytes, sha256 } = await hashPart(folder, part.file);
  if (bytes !== part.bytes) throw damaged(folder, part, `expected ${part.bytes} bytes, got ${bytes}`);
  if (sha256 !== part.sha256) throw damaged(folder, part, "its SHA-256 is not that of the index");
}

export interface VectorFile {
  readonly folder: string;
  readonly part: Part;
  readonly dtype: VectorType;
  readonly dimensions: number;
  readonly count: number;
}

/** Rows of a segment at most: with 384 dimensions 100 MB of floats. */
export const SEGMENT_ROWS = 65_536;

/** The vectors as (rows × dimensions) floats, segment by segment, checked against the hash at the end. */
export async function* readSegments(file: VectorFile): AsyncGenerator<Float32Array> {
  const { folder, part, dtype, dimensions, count } = file;
  const path = join(folder, part.file);
  const stride = rowBytes(dtype, dimensions);
  const hash = createHash("sha256");
  if (part.bytes !== count * stride)
    throw damaged(folder, part, `expected ${count} vectors of ${stride} bytes, got ${part.bytes} bytes`);
  try {
    const handle = await open(path, "r");
    try {
      const { size } = await handle.stat();
      if (size !== part.bytes) throw damaged(folder, part, `expected ${part.bytes} bytes, got ${size}`);
      for (let row = 0; row < count; row += SEGMENT_ROWS) {
        const rows = Math.min(SEGMENT_ROWS, count - row);
        const segment = new Float32Array(rows * dimensions);
        for (let at = 0; at < rows; at += PIECE_ROWS) {
          const n = Math.min(PIECE_ROWS, rows - at);
          const bytes = new Uint8Array(n * stride);
          const { bytesRead } = await handle.read(bytes, 0, bytes.length);
          if (bytesRead !== bytes.length) throw damaged(folder, part, "it became shorter while it was read");
          hash.update(bytes);
          unpackRows(bytes, segment.subarray(at * dimensions, (at + n) * dimensions), dimensions, dtype);
        }
        yield segment;
      }
    } finally {
      await handle.close();
    }
  } catch (cause) {
    throw fileError(`cannot read ${path}`, cause);
  }
  if (hash.digest("hex") !== part.sha256) throw damaged(folder, part, "its SHA-256 is not that of the index");
}

const PIECE_ROWS = 4096;

function damaged(folder: string, part: Part, what: string): FileError {
  return new FileError(
    `${join(folder, part.file)} is damaged: ${what}; remove ${folder} and build the vectors again`,
  );
}
