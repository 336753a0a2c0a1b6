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
 * when asked for. A line that is no passage is a `FileError`.
 */
export function lineStore(
  lines: ByteSource | PartFile,
  starts: ByteSource | PartFile,
  count: number,
): PassageStore {
  const range = new Float64Array(2);
  return {
    count,
    get: (position) => {
      starts.read(new Uint8Array(range.buffer), position * Float64Array.BYTES_PER_ELEMENT);
      const [from, to] = range as unknown as [number, number];
      if (!(from >= 0 && to > from && to <= lines.bytes))
        throw damaged(starts.path, `passage ${position} cannot lie at bytes ${from} to ${to}`);
      const bytes = Buffer.allocUnsafe(to - from - 1);
      lines.read(bytes, from);
      return parsePassage(bytes.toString("utf8"), lines.path, position + 1);
    },
  };
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
