/**
 * The bytes of a file, decompressed while they are read. Compression is told by the first bytes, not by the name:
 * gzip (all members), zstd (all frames; checksums are not verified) and bzip2 (all streams). Memory is a few blocks.
 */
import { createReadStream } from "node:fs";
import { open, stat } from "node:fs/promises";
import { pipeline } from "node:stream";
import { createGunzip } from "node:zlib";
import { DataFormatError, FileError } from "../../errors.ts";
import { fileError } from "../../shared/files.ts";

export type ByteSource = AsyncIterable<Uint8Array>;
type ByteGenerator = AsyncGenerator<Uint8Array>;
export type Compression = "gzip" | "zstd" | "bzip2";

/** Called with the size of each piece that was read from the disk, before decompression. */
export type OnBytes = (count: number) => void;

const PIECE = 1 << 18;
/** A small piece bounds what an archive that is mostly repetition unfolds to at once. */
const PACKED_PIECE = 1 << 14;

/** The decompressed bytes of `path`. Throws `FileError`, and `DataFormatError` when the archive is damaged or cut short. */
export async function* openBytes(path: string, onBytes?: OnBytes): AsyncGenerator<Uint8Array> {
  const compression = compressionOf(await readHead(path, 4));
  const isUnpackedHere = compression === "zstd" || compression === "bzip2";
  const file = createReadStream(path, { highWaterMark: isUnpackedHere ? PACKED_PIECE : PIECE });
  const raw = onBytes === undefined ? file : counted(file, onBytes);
  try {
    if (compression === undefined) yield* raw;
    else if (compression === "gzip") yield* gunzip(raw);
    else yield* compression === "zstd" ? unzstd(raw) : unbzip2(raw);
  } catch (cause) {
    throw compression === undefined
      ? fileError(`cannot read ${path}`, cause)
      : damage(path, compression, cause);
  } finally {
    file.destroy();
  }
}

async function* counted(raw: ByteSource, onBytes: OnBytes): ByteGenerator {
  for await (const piece of raw) {
    onBytes(piece.length);
    yield piece;
  }
}

/** The first `count` bytes of a file as it lies on the disk, fewer when it is shorter. Throws `FileError`, also for a pipe. */
export async function readHead(path: string, count: number): Promise<Buffer> {
  try {
    const about = await stat(path);
    if (about.isFIFO() || about.isSocket())
      throw new FileError(
        `cannot read ${path}: expected a file, got a pipe; files are read more than once: write it to a file first`,
      );
    const handle = await open(path, "r");
    try {
      const { buffer, bytesRead } = await handle.read(Buffer.alloc(count), 0, count, 0);
      return buffer.subarray(0, bytesRead);
    } finally {
      await handle.close();
    }
  } catch (cause) {
    throw fileError(`cannot read ${path}`, cause);
  }
}

export function compressionOf(head: Uint8Array): Compression | undefined {
  const [a, b, c, d] = head;
  if (a === 0x1f && b === 0x8b) return "gzip";
  if (a === 0x28 && b === 0xb5 && c === 0x2f && d === 0xfd) return "zstd";
  // A frame that decoders skip, which some tools put first.
  if (a !== undefined && (a & 0xf0) === 0x50 && b === 0x2a && c === 0x4d && d === 0x18) return "zstd";
  const isDigit = d !== undefined && d >= 0x31 && d <= 0x39;
  return a === 0x42 && b === 0x5a && c === 0x68 && isDigit ? "bzip2" : undefined;
}

async function* gunzip(raw: ByteSource): ByteGenerator {
  const unpacked = createGunzip();
  // The iteration reports the error of either stream; the callback only keeps it from being unhandled.
  pipeline(raw, unpacked, () => undefined);
  yield* unpacked as AsyncIterable<Uint8Array>;
}

async function* unzstd(raw: ByteSource): ByteGenerator {
  const { Decompress } = await import("fzstd");
  const pieces: Uint8Array[] = [];
  // The decompressor may use its buffer again, so each piece is copied.
  const decompressor = new Decompress((piece) => pieces.push(piece.slice()));
  for await (const piece of raw) {
    decompressor.push(piece);
    yield* pieces.splice(0);
  }
  decompressor.push(new Uint8Array(0), true);
  yield* pieces;
}

async function* unbzip2(raw: ByteSource): ByteGenerator {
  const { default: unbzip2Stream } = await import("unbzip2-stream");
  const unpacked = unbzip2Stream();
  const pieces: Uint8Array[] = [];
  const failures: Error[] = [];
  unpacked.on("data", (piece) => pieces.push(piece));
  unpacked.on("error", (error) => failures.push(error));
  for await (const piece of raw) {
    unpacked.write(piece);
    if (failures.length > 0) throw failures[0];
    yield* pieces.splice(0);
  }
  unpacked.end();
  yield* pieces;
  if (failures.length > 0) throw failures[0];
}

function damage(path: string, compression: Compression, cause: unknown): unknown {
  const known = fileError(`cannot read ${path}`, cause);
  if (known !== cause || !(cause instanceof Error)) return known;
  if (cause.name === "AbortError") return cause;
  const isShort = /unexpected end|unexpected EOF|prematurely|of undefined/i.test(cause.message);
  const came = isShort ? "a file that is cut short" : `damaged data (${cause.message})`;
  return new DataFormatError(
    path,
    undefined,
    `expected a whole ${compression} file, got ${came}; copy or download it again`,
    { cause },
  );
}
