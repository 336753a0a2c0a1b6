/**
 * Vectors that grow on disk part by part and survive a kill: `vectors.<type>` is appended to and made durable, then
 * a line of `journal.jsonl` says how many bytes the part has and their SHA-256. Going on means trusting only parts
 * whose line and bytes are whole; what lies behind them is cut off and made again.
 */
import { createHash } from "node:crypto";
import { type FileHandle, open, readFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { exists, fileError } from "../../shared/files.ts";
import { sha256 } from "../../shared/hash.ts";

const lineSchema = z.strictObject({ rows: z.int().min(1), bytes: z.int().min(1), sha256: z.string() });
type Line = z.output<typeof lineSchema>;
/** `length`: bytes of the line itself, its end included. */
type LineOnDisk = Line & { readonly length: number };

/** The file of its lines. */
export const JOURNAL = "journal.jsonl";

export class VectorJournal {
  /** Rows that are safe on disk. */
  rows = 0;
  readonly #data: FileHandle;
  readonly #journal: FileHandle;
  readonly #path: string;
  #bytes = 0;
  #journalBytes = 0;

  private constructor(data: FileHandle, journal: FileHandle, path: string) {
    this.#data = data;
    this.#journal = journal;
    this.#path = path;
  }

  /** Opens the vectors `file` of `folder` to go on with them, or begins. Throws `FileError`. */
  static async open(folder: string, file: string): Promise<VectorJournal> {
    const path = join(folder, file);
    try {
      const lines = await readLines(join(folder, JOURNAL));
      const data = await openForUpdate(path);
      const whole = await wholeParts(data, lines);
      const journal = await openForUpdate(join(folder, JOURNAL));
      const vectors = new VectorJournal(data, journal, path);
      for (const { rows, bytes, length } of whole) {
        vectors.rows += rows;
        vectors.#bytes += bytes;
        vectors.#journalBytes += length;
      }
      // The lines that stay are never written again: a kill here must not lose them.
      await journal.truncate(vectors.#journalBytes);
      await data.truncate(vectors.#bytes);
      return vectors;
    } catch (cause) {
      throw fileError(`cannot write ${path}`, cause);
    }
  }

  /** Adds a part; when this returns it survives a kill. Throws `FileError`. */
  async append(part: Uint8Array, rows: number): Promise<void> {
    try {
      await writeAt(this.#data, part, this.#bytes);
      await this.#data.sync();
      const line: Line = { rows, bytes: part.byteLength, sha256: sha256(part) };
      await this.#note(line);
    } catch (cause) {
      throw fileError(`cannot write ${this.#path}`, cause);
    }
    this.#bytes += part.byteLength;
    this.rows += rows;
  }

  async #note(line: Line): Promise<void> {
    const text = Buffer.from(`${JSON.stringify(line)}\n`);
    await writeAt(this.#journal, text, this.#journalBytes);
    await this.#journal.sync();
    this.#journalBytes += text.length;
  }

  async close(): Promise<void> {
    await this.#data.close();
    await this.#journal.close();
  }
}

async function openForUpdate(path: string): Promise<FileHandle> {
  return await open(path, (await exists(path)) ? "r+" : "wx+");
}

async function writeAt(handle: FileHandle, bytes: Uint8Array, position: number): Promise<void> {
  for (let at = 0; at < bytes.length; )
    at += (await handle.write(bytes, at, bytes.length - at, position + at)).bytesWritten;
}

/** The lines that were written whole. */
async function readLines(path: string): Promise<LineOnDisk[]> {
  if (!(await exists(path))) return [];
  const lines: LineOnDisk[] = [];
  for (const text of (await readFile(path, "utf8")).split("\n").slice(0, -1)) {
    const line = parseLine(text);
    if (line === undefined) break;
    lines.push({ ...line, length: Buffer.byteLength(text) + 1 });
  }
  return lines;
}

function parseLine(text: string): Line | undefined {
  try {
    return lineSchema.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}

/** The leading parts whose bytes are those of the journal. */
async function wholeParts(data: FileHandle, lines: readonly LineOnDisk[]): Promise<LineOnDisk[]> {
  const whole: LineOnDisk[] = [];
  let position = 0;
  for (const line of lines) {
    const bytes = new Uint8Array(line.bytes);
    const { bytesRead } = await data.read(bytes, 0, line.bytes, position);
    if (bytesRead !== line.bytes) break;
    if (createHash("sha256").update(bytes).digest("hex") !== line.sha256) break;
    whole.push(line);
    position += line.bytes;
  }
  return whole;
}
