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
      recent.set(position, passage, bytes.byteLength);
      return passage;
    },
  };
}

/** About how much memory the passages that were read lately may take. */
const RECENT_BYTES = 64 << 20;
/** What an entry takes besides its line, roughly. */
const ENTRY_BYTES = 200;

/**
 * Passages that were read lately, so that what many queries find is parsed once. Two generations: what is used moves to
 * the young one; when that is full it becomes the old one, and the old one is forgotten.
 */
class RecentPassages {
  #young: Map<number, Recent> = new Map();
  #old: Map<number, Recent> = new Map();
  #youngBytes = 0;

  get(position: number): Passage | undefined {
    const young = this.#young.get(position);
    if (young !== undefined) return young.passage;
    const old = this.#old.get(position);
    if (old !== undefined) this.#keep(position, old);
    return old?.passage;
  }

  /** `bytes` is the length of the passage's line. */
  set(position: number, passage: Passage, bytes: number): void {
    this.#keep(position, { passage, bytes: bytes + ENTRY_BYTES });
  }

  #keep(position: number, recent: Recent): void {
    if (recent.bytes > RECENT_BYTES / 8) return;
    if (this.#youngBytes + recent.bytes > RECENT_BYTES / 2) {
      this.#old = this.#young;
      this.#young = new Map();
      this.#youngBytes = 0;
    }
    this.#young.set(position, recent);
    this.#youngBytes += recent.bytes;
  }
}

interface Recent {
  readonly passage: Passage;
  readonly bytes: number;
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
