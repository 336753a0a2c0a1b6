/**
 * Documents as JSON in UTF-8, kept: writing them again for each answer would cost a server a good part of its time
 * (`bench/serving.ts`). Two generations: what is used moves to the young one; when that is full it becomes the old one,
 * and the old one is forgotten. An entry is used only for a passage that equals the one it was made of, since
 * retrievers need not have unique ids.
 */
import type { Passage } from "../corpus/passage.ts";
import { documentJson } from "./document-json.ts";

interface Entry {
  readonly passage: Passage;
  readonly json: Buffer;
}

/** Bytes an entry takes besides its texts, roughly. */
const OVERHEAD = 300;

export class DocumentCache {
  readonly #most: number;
  #young: Map<string, Entry> = new Map();
  #old: Map<string, Entry> = new Map();
  #youngBytes = 0;

  /** Holds about `most` bytes, texts of passages included. */
  constructor(most: number) {
    this.#most = most;
  }

  /** The document of a passage; must not be written to. */
  get(passage: Passage): Buffer {
    const young = this.#young.get(passage.id);
    if (young !== undefined && isSame(young.passage, passage)) return young.json;
    const old = this.#old.get(passage.id);
    const entry =
      old !== undefined && isSame(old.passage, passage)
        ? old
        : { passage, json: Buffer.from(documentJson(passage)) };
    this.#keep(entry);
    return entry.json;
  }

  #keep(entry: Entry): void {
    const { passage, json } = entry;
    const bytes = OVERHEAD + json.length + passage.title.length + passage.text.length;
    if (bytes * 4 > this.#most) return;
    if (this.#youngBytes + bytes > this.#most / 2) {
      this.#old = this.#young;
      this.#young = new Map();
      this.#youngBytes = 0;
    }
    this.#young.set(passage.id, entry);
    this.#youngBytes += bytes;
  }
}

function isSame(a: Passage, b: Passage): boolean {
  if (a === b) return true;
  if (a.title !== b.title || a.text !== b.text) return false;
  if (a.extra === undefined && b.extra === undefined && a.source === undefined && b.source === undefined)
    return true;
  return JSON.stringify([a.source, a.extra]) === JSON.stringify([b.source, b.extra]);
}
