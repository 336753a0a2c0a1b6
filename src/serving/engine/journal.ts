/**
 * A journal on disk: lines of JSON in numbered segments, of which the oldest are removed. Lines that come while one
 * write is under way are written together by the next, so that thousands a second cost a few writes. A kill may cut the last
 * line of a segment off, which is then as if it had never been; every start begins a new segment.
 */
import { createReadStream } from "node:fs";
import { type FileHandle, open, readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { FileError } from "../../errors.ts";
import { fileError, makeFolder } from "../../shared/files.ts";

export interface JournalLimits {
  /** A segment that is larger is followed by another. */
  readonly segmentBytes: number;
  /** Most segments that are kept. */
  readonly segments: number;
}

export const defaultJournalLimits: JournalLimits = { segmentBytes: 16 * 2 ** 20, segments: 16 };

/** How long the next lines are gathered after a write; one that comes alone, later, is written at once. */
const gatherMs = 4;

/** Where a line lies. */
export interface Place {
  readonly segment: number;
  readonly offset: number;
  readonly bytes: number;
}

interface Waiting {
  readonly line: Buffer;
  readonly resolve: (place: Place) => void;
  readonly reject: (error: unknown) => void;
}

export class Journal {
  readonly #folder: string;
  readonly #limits: JournalLimits;
  readonly #onDropped: (segment: number) => void;
  #segment: number;
  #handle: FileHandle | undefined;
  #size = 0;
  #waiting: Waiting[] = [];
  #writing: Promise<void> | undefined;
  /** Resolves when lines were gathered for long enough since the last write. */
  #gathered: Promise<void> = Promise.resolve();

  private constructor(folder: string, segment: number, setting: JournalSetting) {
    this.#folder = folder;
    this.#segment = segment;
    this.#limits = setting.limits;
    this.#onDropped = setting.onDropped;
  }

  /** Reads what is there, line by line, and opens it for more. Throws `FileError`. */
  static async open(folder: string, setting: JournalSetting): Promise<Journal> {
    try {
      await makeFolder(folder);
      const segments = await segmentsOf(folder);
      for (const segment of segments) await readSegment(pathOf(folder, segment), segment, setting.onLine);
      return new Journal(folder, segments.at(-1) ?? 0, setting);
    } catch (cause) {
      throw fileError(`cannot read the journal in ${folder}`, cause);
    }
  }

  /** Writes one line (without its end); resolves when it is in the file. Throws `FileError`. */
  append(line: string): Promise<Place> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ line: Buffer.from(`${line}\n`), resolve, reject });
      this.#writing ??= this.#writeAll().finally(() => {
        this.#writing = undefined;
      });
    });
  }

  /** The text at a place, such as a part of a line. Throws `FileError`. */
  async read({ segment, offset, bytes }: Place): Promise<string> {
    const path = pathOf(this.#folder, segment);
    const buffer = Buffer.alloc(bytes);
    try {
      const handle = await open(path, "r");
      try {
        const { bytesRead } = await handle.read(buffer, 0, bytes, offset);
        if (bytesRead < bytes) throw new FileError(`${path} ends before byte ${offset + bytes}`);
      } finally {
        await handle.close();
      }
    } catch (cause) {
      throw fileError(`cannot read ${path}`, cause);
    }
    return buffer.toString();
  }

  /** Waits for what is being written. */
  async close(): Promise<void> {
    await this.#writing;
    await this.#handle?.close();
    this.#handle = undefined;
  }

  async #writeAll(): Promise<void> {
    while (this.#waiting.length > 0) {
      // Lines that come together are written together: handing a write over costs more than all of them.
      await new Promise((resolve) => setImmediate(resolve));
      await this.#gathered;
      const batch = this.#waiting;
      this.#waiting = [];
      try {
        const handle = await this.#roomy();
        const start = this.#size;
        const all = Buffer.concat(batch.map(({ line }) => line));
        for (let done = 0; done < all.length; )
          done += (await handle.write(all, done, all.length - done, start + done)).bytesWritten;
        this.#size = start + all.length;
        this.#gathered = sleep(gatherMs);
        let offset = start;
        for (const { line, resolve } of batch) {
          resolve({ segment: this.#segment, offset, bytes: line.length });
          offset += line.length;
        }
      } catch (cause) {
        // What it holds of this batch is cut off or never answered; what follows goes into another segment.
        await this.#handle?.close().catch(() => undefined);
        this.#handle = undefined;
        const error = fileError(`cannot write ${pathOf(this.#folder, this.#segment)}`, cause);
        for (const { reject } of batch) reject(error);
      }
    }
  }

  /** The file of a segment that is not full. */
  async #roomy(): Promise<FileHandle> {
    if (this.#handle !== undefined && this.#size < this.#limits.segmentBytes) return this.#handle;
    await this.#handle?.close();
    this.#handle = undefined;
    const next = this.#segment + 1;
    this.#handle = await open(pathOf(this.#folder, next), "w");
    this.#segment = next;
    this.#size = 0;
    for (const old of await segmentsOf(this.#folder)) {
      if (old > next - this.#limits.segments) continue;
      await rm(pathOf(this.#folder, old), { force: true });
      this.#onDropped(old);
    }
    return this.#handle;
  }
}

export interface JournalSetting {
  readonly limits: JournalLimits;
  /** Told of every whole line that was there, in order. */
  readonly onLine: (line: string, place: Place) => void;
  /** Told of a segment that was removed. */
  readonly onDropped: (segment: number) => void;
}

function pathOf(folder: string, segment: number): string {
  return join(folder, `${String(segment).padStart(8, "0")}.jsonl`);
}

/** Numbers of the segments, oldest first. */
async function segmentsOf(folder: string): Promise<number[]> {
  const names = (await readdir(folder)).filter((name) => /^\d{8}\.jsonl$/.test(name));
  return names.map((name) => Number.parseInt(name, 10)).sort((a, b) => a - b);
}

async function readSegment(path: string, segment: number, onLine: JournalSetting["onLine"]): Promise<void> {
  const { size } = await stat(path);
  const lines = createInterface({ input: createReadStream(path), crlfDelay: Number.POSITIVE_INFINITY });
  let offset = 0;
  for await (const line of lines) {
    const bytes = Buffer.byteLength(line) + 1;
    // Without its line end it was cut off.
    if (offset + bytes <= size) onLine(line, { segment, offset, bytes });
    offset += bytes;
  }
}
