/**
 * From the id of a passage to its position: a hash table of positions alone (open addressing, FNV-1a over UTF-16
 * code units, at most two thirds full), stored as 32-bit numbers. Ids themselves are compared in the passages.
 */

import type { PartFile } from "./part-files.ts";
import type { ByteSource, PassageStore } from "./passage-store.ts";

export function idHash(id: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < id.length; i++) hash = Math.imul(hash ^ id.charCodeAt(i), 0x01000193);
  return (hash ^ (hash >>> 15)) >>> 0;
}

/** (slots) Position + 1 of the passage in each slot, 0 where it is free; `hashes` are those of the ids in order. */
export function idTable(hashes: Uint32Array): Uint32Array {
  const slots = new Uint32Array(2 ** Math.ceil(Math.log2(hashes.length * 1.5 + 1)));
  const mask = slots.length - 1;
  for (let position = 0; position < hashes.length; position++) {
    let slot = (hashes[position] as number) & mask;
    while (slots[slot] !== 0) slot = (slot + 1) & mask;
    slots[slot] = position + 1;
  }
  return slots;
}

/** Looks ids up in a table as `idTable` makes it; the first of equal ids is found. */
export function positionFinder(
  table: ByteSource | PartFile,
  passages: PassageStore,
): (id: string) => number | undefined {
  const size = table.bytes / Uint32Array.BYTES_PER_ELEMENT;
  const value = new Uint32Array(1);
  const bytes = new Uint8Array(value.buffer);
  return (id) => {
    let slot = idHash(id) & (size - 1);
    for (let step = 0; step < size; step++) {
      table.read(bytes, slot * Uint32Array.BYTES_PER_ELEMENT);
      const entry = value[0] as number;
      if (entry === 0 || entry > passages.count) return undefined;
      if (passages.get(entry - 1).id === id) return entry - 1;
      slot = (slot + 1) & (size - 1);
    }
    return undefined;
  };
}
