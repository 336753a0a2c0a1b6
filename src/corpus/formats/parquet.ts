/**
 * Parquet files, one row group at a time: memory holds the largest group. Codecs: Snappy, gzip, zstd, brotli, none; LZ4 is
 * tried. Values become what JSON
 * has: whole numbers beyond 2^53 and dates become texts. Encrypted files and files over the network are not read.
 */
import { type FileHandle, open } from "node:fs/promises";
import { DataFormatError } from "../../errors.ts";
import { fileError } from "../../shared/files.ts";
import type { JsonRecord } from "./json-record.ts";
import type { OnBytes } from "./open-bytes.ts";

/** Rows of a group; `first` is the number of the first row in the file, from 0. */
export interface ParquetBatch {
  readonly first: number;
  readonly rows: readonly JsonRecord[];
}

/** The rows of a file. Throws `FileError`, and `DataFormatError` when the file is no whole Parquet file. */
export async function* parquetRows(path: string, onBytes?: OnBytes): AsyncGenerator<ParquetBatch> {
  let handle: FileHandle;
  try {
    handle = await open(path, "r");
  } catch (cause) {
    throw fileError(`cannot read ${path}`, cause);
  }
  try {
    yield* rowsOf(handle, path, onBytes);
  } finally {
    await handle.close();
  }
}

async function* rowsOf(handle: FileHandle, path: string, onBytes?: OnBytes): AsyncGenerator<ParquetBatch> {
  const { parquetMetadataAsync, parquetReadObjects } = await import("hyparquet");
  const { compressors } = await import("hyparquet-compressors");
  const { size } = await handle.stat();
  await requireWhole(handle, path, size);
  const file = { byteLength: size, slice: (start: number, end = size) => readSlice(handle, start, end) };
  const metadata = await parquetMetadataAsync(file).catch((cause: unknown) => {
    throw damage(path, cause);
  });
  let first = 0;
  for (const group of metadata.row_groups) {
    const count = Number(group.num_rows);
    const range = { rowStart: first, rowEnd: first + count };
    const rows = await parquetReadObjects({ file, metadata, compressors, ...range }).catch(
      (cause: unknown) => {
        const codecs = group.columns.map(({ meta_data }) => meta_data?.codec ?? "");
        const unsure = codecs.find((codec) => /^LZ/.test(codec));
        throw unsure === undefined ? damage(path, cause, range) : badCodec(path, unsure, cause);
      },
    );
    onBytes?.(
      group.columns.reduce((sum, { meta_data }) => sum + Number(meta_data?.total_compressed_size ?? 0), 0),
    );
    yield { first, rows: rows.map((row) => plainValue(row) as JsonRecord) };
    first += count;
  }
}

async function readSlice(handle: FileHandle, start: number, end: number): Promise<ArrayBuffer> {
  const bytes = new Uint8Array(end - start);
  let filled = 0;
  while (filled < bytes.length) {
    const { bytesRead } = await handle.read(bytes, filled, bytes.length - filled, start + filled);
    if (bytesRead === 0) throw new Error("the file ends early");
    filled += bytesRead;
  }
  return bytes.buffer;
}

const magic = "PAR1";

async function requireWhole(handle: FileHandle, path: string, size: number): Promise<void> {
  const isLong = size >= 12;
  const end = isLong ? Buffer.from(await readSlice(handle, size - 4, size)).toString("latin1") : "";
  if (end === magic) return;
  const what = end === "PARE" ? "an encrypted one" : "one that is cut short or damaged";
  throw new DataFormatError(
    path,
    undefined,
    `expected a whole Parquet file, got ${what}; copy or download it again`,
  );
}

function damage(path: string, cause: unknown, range?: { rowStart: number; rowEnd: number }): unknown {
  const known = fileError(`cannot read ${path}`, cause);
  if (known !== cause) return known;
  const where = range ? ` (rows ${range.rowStart} to ${range.rowEnd - 1})` : "";
  const reason = cause instanceof Error ? cause.message : String(cause);
  return new DataFormatError(
    path,
    undefined,
    `expected a whole Parquet file, got damaged data${where}: ${reason}; copy or download it again`,
    { cause },
  );
}

/** The decoder of LZ4 fails on some sound files and that of LZO is missing, so the file need not be damaged. */
function badCodec(path: string, codec: string, cause: unknown): DataFormatError {
  return new DataFormatError(
    path,
    undefined,
    `expected Snappy, gzip, zstd, brotli or no compression, got ${codec}, which could not be unpacked; write the file again with zstd`,
    { cause },
  );
}

/** A value of a column as JSON has it. */
function plainValue(value: unknown): unknown {
  if (typeof value === "bigint") return Number.isSafeInteger(Number(value)) ? Number(value) : String(value);
  if (value === undefined || value === null) return null;
  if (typeof value !== "object") return value;
  if (value instanceof Date) return value.toISOString();
  if (value instanceof Uint8Array) return Buffer.from(value).toString("base64");
  if (Array.isArray(value)) return value.map(plainValue);
  if (ArrayBuffer.isView(value)) return Array.from(value as unknown as ArrayLike<unknown>, plainValue);
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, plainValue(inner)]));
}
