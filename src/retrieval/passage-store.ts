/** The passages of an index by position in the corpus, wherever they are kept (memory or disk). */
import type { Passage } from "../corpus/passage.ts";
import { passageOf } from "../corpus/passage-record.ts";
import { damaged, type PartFile } from "./part-files.ts";

export interface PassageStore {
  readonly count: number;
  /** The passage at a position from 0 to `count` - 1. */
  get(position: number): Passage;
}

/** Bytes of a file by place. */
export interface ByteSource {
  readonly path: string;
  readonly bytes: number;
  read(target: Uint8Array, position: number): void;
}

/** Bytes that are in memory. */
export function memoryBytes(path: string, buffer: ArrayBufferLike): ByteSource {
  return {
    path,
    bytes: buffer.byteLength,
    read: (target, position) => target.set(new Uint8Array(buffer, position, target.byteLength)),
  };
}

/**
 * Passages as JSON Lines with a table of where each line begins (64-bit floats, one more than lines), read and parsed
 * when asked for; those read lately are kept. A line that is no passage is a `FileError`.
 */
export function lineStore(
  lines: ByteSource | PartFile,
  starts: ByteSource | PartFile,
  count: number,
): PassageStore {
  const range = new Float64Array(2);
  const recent = new RecentPassages();
  return {
    count,
    get: (position) => {
      const known = recent.get(position);
      if (known !== undefined) return known;
      starts.read(new Uint8Array(range.buffer), position * Float64Array.BYTES_PER_ELEMENT);
      const [from, to] = range as unknown as [number, number];
      if (!(from >= 0 && to > from && to <= lines.bytes))
        throw damaged(starts.path, `passage ${position} cannot lie at bytes ${from} to ${to}`);
      const bytes = Buffer.allocUnsafe(to - from - 1);
      lines.read(bytes, from);
      const passage = parsePassage(bytes.toString("utf8"), lines.path, position + 1);
      recent.set(position, passage);
      return passage;
    },
  };
}

/** Of so many places, each holds the last passage that fell on it; longer passages are not kept. */
const PLACES = 8192;
const LONGEST_KEPT = 4096;

/** Passages that were read lately, so that what many queries find is parsed once: some ten megabytes at most. */
class RecentPassages {
  readonly #positions = new Float64Array(PLACES).fill(-1);
  readonly #passages: (Passage | undefined)[] = new Array(PLACES);

  get(position: number): Passage | undefined {
    const place = position % PLACES;
    return this.#positions[place] === position ? this.#passages[place] : undefined;
  }

  set(position: number, passage: Passage): void {
    if (passage.text.length > LONGEST_KEPT) return;
    const place = position % PLACES;
    this.#positions[place] = position;
    this.#passages[place] = passage;
  }
}

function parsePassage(line: string, path: string, number: number): Passage {
  let record: Record<string, unknown>;
  try {
    record = JSON.parse(line) as Record<string, unknown>;
  } catch {
    throw damaged(path, `line ${number} is not JSON`);
  }
  const passage = passageOf(record, path, number);
  if (passage instanceof Error) throw damaged(path, passage.message);
  return passage;
}
