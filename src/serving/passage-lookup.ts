/**
 * Finds a passage by its id, or by the `url` its record carries, for clients that open what they found. A hash table
 * of positions only (12 to 24 bytes a passage): the keys themselves stay in the store and are compared there. It is
 * built at the first use, in pieces, so that a large corpus neither delays the start nor blocks other requests.
 */
import { setImmediate } from "node:timers/promises";
import type { Passage } from "../corpus/passage.ts";
import type { PassageStore } from "../retrieval/passage-store.ts";
import { urlOf } from "./document-json.ts";

/** The passage with this id or url; the first one where several have it. Ids win over urls. */
export type PassageLookup = (key: string) => Promise<Passage | undefined>;

const PASSAGES_PER_TURN = 1000;

export function passageLookup(store: PassageStore): PassageLookup {
  let table: Promise<Uint32Array> | undefined;
  return async (key) => {
    table ??= buildTable(store).catch((error: unknown) => {
      table = undefined; // a store that cannot be read now may be later
      throw error;
    });
    let byUrl: Passage | undefined;
    for (const position of candidates(await table, key)) {
      const passage = store.get(position);
      if (passage.id === key) return passage;
      if (byUrl === undefined && urlOf(passage) === key) byUrl = passage;
    }
    return byUrl;
  };
}

/** (slots), a power of two of at least 3 a passage: position + 1, or 0 where empty; open addressing, steps of 1. */
async function buildTable(store: PassageStore): Promise<Uint32Array> {
  const table = new Uint32Array(2 ** Math.ceil(Math.log2(3 * store.count + 1)));
  for (let position = 0; position < store.count; position++) {
    const passage = store.get(position);
    insert(table, passage.id, position);
    const url = urlOf(passage);
    if (url !== passage.id) insert(table, url, position);
    if (position % PASSAGES_PER_TURN === 0) await setImmediate();
  }
  return table;
}

function insert(table: Uint32Array, key: string, position: number): void {
  let slot = slotOf(table, key);
  while (table[slot] !== 0) slot = (slot + 1) % table.length;
  table[slot] = position + 1;
}

/** Positions that may have the key, in the order in which they were inserted. */
function* candidates(table: Uint32Array, key: string): Generator<number> {
  for (let slot = slotOf(table, key); table[slot] !== 0; slot = (slot + 1) % table.length)
    yield (table[slot] as number) - 1;
}

/** FNV-1a over UTF-16 code units. */
function slotOf(table: Uint32Array, key: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < key.length; i++) hash = Math.imul(hash ^ key.charCodeAt(i), 0x01000193);
  return ((hash ^ (hash >>> 15)) >>> 0) % table.length;
}
