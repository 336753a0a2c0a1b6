/**
 * The files an index folder is made of: bytes written once with their SHA-256, and read back whole or piece by piece.
 * Typed arrays are stored as they lie in memory (little-endian on every platform that Node 20 supports but s390x).
 * Reading and writing are synchronous: pieces come from the operating system's cache or go there.
 */
import { createHash } from "node:crypto";
import { closeSync, fstatSync, fsyncSync, ftruncateSync, openSync, readSync, writeSync } from "node:fs";
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

/** Arrays that a part can hold. */
export type PartArray = Uint32Array | Uint16Array | Float32Array | Float64Array;

/** Writing, reading and hashing go in pieces of this size. */
const PIECE_BYTES = 1 << 20;

/** Writes one part from its start to its end; what went wrong is a `FileError`. */
export class PartWriter {
  readonly #folder: string;
  readonly #file: string;
  readonly #hash = createHash("sha256");
  readonly #pending = Buffer.allocUnsafe(PIECE_BYTES);
  #pendingBytes = 0;
  #descriptor: number | undefined;
  #bytes = 0;
  /** So many bytes are in the file already: they are hashed and not written again. */
  readonly #present: number;
  #written = 0;

  /** `present` bytes of an earlier writer are kept, the rest of the file is cut off. */
  constructor(folder: string, file: string, present = 0) {
    this.#folder = folder;
    this.#file = file;
    this.#present = present;
    this.#try(() => {
      this.#descriptor = openSync(this.#path, present > 0 ? "r+" : "w");
      if (present > 0) ftruncateSync(this.#descriptor, present);
    });
  }

  /** Bytes taken so far. */
  get bytes(): number {
    return this.#bytes;
  }

  write(piece: Uint8Array): void {
    this.#bytes += piece.byteLength;
    if (piece.byteLength > PIECE_BYTES) {
      this.#flush();
      this.#put(piece);
      return;
    }
    if (this.#pendingBytes + piece.byteLength > PIECE_BYTES) this.#flush();
    this.#pending.set(piece, this.#pendingBytes);
    this.#pendingBytes += piece.byteLength;
  }

  /** Writes a text as UTF-8; returns its bytes. */
  writeText(text: string): number {
    if (text.length * 3 > PIECE_BYTES) {
      const bytes = Buffer.from(text);
      this.write(bytes);
      return bytes.byteLength;
    }
    if (this.#pendingBytes + text.length * 3 > PIECE_BYTES) this.#flush();
    const length = this.#pending.write(text, this.#pendingBytes);
    this.#pendingBytes += length;
    this.#bytes += length;
    return length;
  }

  writeArray(array: PartArray): void {
    this.write(new Uint8Array(array.buffer, array.byteOffset, array.byteLength));
  }

  /** Makes all bytes so far durable and says what their SHA-256 is. */
  sync(): string {
    this.#flush();
    this.#try(() => fsyncSync(this.#descriptor as number));
    return this.#hash.copy().digest("hex");
  }

  /** Makes the part durable and closes it. */
  finish(): Part {
    const sha256 = this.sync();
    this.close();
    return { file: this.#file, bytes: this.#bytes, sha256 };
  }

  /** Closes the file, whatever is written; doing it twice is harmless. */
  close(): void {
    if (this.#descriptor !== undefined) closeSync(this.#descriptor);
    this.#descriptor = undefined;
  }

  get #path(): string {
    return join(this.#folder, this.#file);
  }

  #flush(): void {
    this.#put(this.#pending.subarray(0, this.#pendingBytes));
    this.#pendingBytes = 0;
  }

  #put(bytes: Uint8Array): void {
    this.#hash.update(bytes);
    const known = Math.min(this.#present - Math.min(this.#present, this.#written), bytes.byteLength);
    let at = known;
    this.#try(() => {
      while (at < bytes.byteLength)
        at += writeSync(this.#descriptor as number, bytes, at, bytes.byteLength - at, this.#written + at);
    });
    this.#written += bytes.byteLength;
  }

  #try(action: () => void): void {
    try {
      action();
    } catch (cause) {
      throw fileError(`cannot write ${this.#path}`, cause);
    }
  }
}

/** Writes a part in one go. */
export function writePart(folder: string, file: string, pieces: Iterable<Uint8Array>): Part {
  const writer = new PartWriter(folder, file);
  try {
    for (const piece of pieces) writer.write(piece);
    return writer.finish();
  } finally {
    writer.close();
  }
}

/** The bytes of a typed array, without a copy. */
export function bytesOf(array: PartArray): Uint8Array {
  return new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
}

/** Lines of UTF-8 in pieces of about a megabyte, each line with its end. */
export function* linePieces(lines: Iterable<string>): Generator<Uint8Array> {
  let pending: string[] = [];
  let length = 0;
  for (const line of lines) {
    pending.push(line, "\n");
    length += line.length;
    if (length < PIECE_BYTES) continue;
    yield Buffer.from(pending.join(""));
    pending = [];
    length = 0;
  }
  if (pending.length > 0) yield Buffer.from(pending.join(""));
}

/** A part that is open for reading at any place. */
export class PartFile {
  readonly path: string;
  readonly bytes: number;
  #descriptor: number | undefined;

  /** Throws `FileError` when the file is missing or has another size than the part. */
  constructor(folder: string, part: Part) {
    this.path = join(folder, part.file);
    this.bytes = part.bytes;
    try {
      this.#descriptor = openSync(this.path, "r");
      const { size } = fstatSync(this.#descriptor);
      if (size !== part.bytes) throw damaged(this.path, `expected ${part.bytes} bytes, got ${size}`);
    } catch (cause) {
      this.close();
      throw fileError(`cannot read ${this.path}`, cause);
    }
  }

  /** Fills `target` with the bytes from `position` on. */
  read(target: Uint8Array, position: number): void {
    if (this.#descriptor === undefined)
      throw new FileError(`${this.path}: the index was closed; open it again`);
    try {
      for (let at = 0; at < target.byteLength; ) {
        const length = Math.min(target.byteLength - at, 1 << 30);
        const count = readSync(this.#descriptor, target, at, length, position + at);
        if (count === 0) throw damaged(this.path, "it became shorter while it was in use");
        at += count;
      }
    } catch (cause) {
      throw fileError(`cannot read ${this.path}`, cause);
    }
  }

  close(): void {
    if (this.#descriptor !== undefined) closeSync(this.#descriptor);
    this.#descriptor = undefined;
  }
}

/** The content of a part. Throws `FileError` when it is missing or short. */
export function readPart(folder: string, part: Part): ArrayBuffer {
  const buffer = new ArrayBuffer(part.bytes);
  readInto(new Uint8Array(buffer), folder, part);
  return buffer;
}

/** As `readPart`, and throws `FileError` when the content is not what was written; in shared memory if so wanted. */
export function readCheckedPart(folder: string, part: Part, isShared = false): ArrayBufferLike {
  const buffer = isShared ? new SharedArrayBuffer(part.bytes) : new ArrayBuffer(part.bytes);
  readCheckedInto(new Uint8Array(buffer), folder, part);
  return buffer;
}

/** As `readCheckedPart`, to a place that is as large as the part. */
export function readCheckedInto(target: Uint8Array, folder: string, part: Part): void {
  readInto(target, folder, part);
  const hash = createHash("sha256");
  for (let at = 0; at < target.byteLength; at += 1 << 30) hash.update(target.subarray(at, at + (1 << 30)));
  if (hash.digest("hex") !== part.sha256)
    throw damaged(join(folder, part.file), "its SHA-256 is not that of the index");
}

function readInto(target: Uint8Array, folder: string, part: Part): void {
  const file = new PartFile(folder, part);
  try {
    file.read(target, 0);
  } finally {
    file.close();
  }
}

/** Reads a part through and throws `FileError` when it is missing, short or altered; memory stays small. */
export function checkPart(folder: string, part: Part): void {
  const file = new PartFile(folder, part);
  const hash = createHash("sha256");
  const piece = new Uint8Array(PIECE_BYTES);
  try {
    for (let at = 0; at < part.bytes; at += PIECE_BYTES) {
      const target = piece.subarray(0, Math.min(PIECE_BYTES, part.bytes - at));
      file.read(target, at);
      hash.update(target);
    }
  } finally {
    file.close();
  }
  if (hash.digest("hex") !== part.sha256) throw damaged(file.path, "its SHA-256 is not that of the index");
}

export function damaged(path: string, what: string): FileError {
  return new FileError(`${path} is damaged: ${what}; build the index again`);
}
