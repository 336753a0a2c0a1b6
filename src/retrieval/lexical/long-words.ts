/** Words that a `WordTable` cannot pack into a number: found by a hash of their letters (FNV-like, open addressing). */
import { GrowingArray } from "./growing-array.ts";
import { lower } from "./letters.ts";

/** Fields of an entry. */
const FIELDS = 4;
const HASH = 0;
const LETTERS_END = 1;
const CODE = 2;
const COUNT = 3;

export class LongWords {
  /** Entry of each slot plus 1; 0 is a free slot. The size is a power of two, at least twice the entries. */
  #slots = new Uint32Array(1 << 12);
  /** (words, FIELDS) Together, since they are read together. */
  readonly #entries = new GrowingArray(Int32Array);
  readonly #letters = new GrowingArray(Uint16Array);

  get count(): number {
    return this.#entries.length / FIELDS;
  }

  clear(): void {
    this.#slots = new Uint32Array(1 << 12);
    this.#entries.length = 0;
    this.#letters.length = 0;
  }

  /** The entry of a word, A-Z in lower case, or -1. */
  find(units: Uint16Array, start: number, end: number): number {
    const slots = this.#slots;
    const entries = this.#entries.data;
    const mask = slots.length - 1;
    const hash = hashOf(units, start, end);
    let slot = hash & mask;
    for (let entry = slots[slot] as number; entry !== 0; entry = slots[slot] as number) {
      const at = (entry - 1) * FIELDS;
      if (entries[at + HASH] === hash && this.#isEntry(at, { units, start, end })) return entry - 1;
      slot = (slot + 1) & mask;
    }
    return -1;
  }

  codeOf(entry: number): number {
    return this.#entries.data[entry * FIELDS + CODE] as number;
  }

  countOf(entry: number): number {
    return this.#entries.data[entry * FIELDS + COUNT] as number;
  }

  /** Remembers two numbers for a word that is not there yet. */
  add(word: string, code: number, count: number): void {
    const units = Uint16Array.from({ length: word.length }, (_, i) => word.charCodeAt(i));
    const hash = hashOf(units, 0, units.length);
    for (const unit of units) this.#letters.push(unit);
    for (const field of [hash, this.#letters.length, code, count]) this.#entries.push(field);
    if (this.count * 2 <= this.#slots.length) this.#place(this.count - 1);
    else {
      this.#slots = new Uint32Array(this.#slots.length * 2);
      for (let entry = 0; entry < this.count; entry++) this.#place(entry);
    }
  }

  #place(entry: number): void {
    const mask = this.#slots.length - 1;
    let slot = (this.#entries.data[entry * FIELDS + HASH] as number) & mask;
    while (this.#slots[slot] !== 0) slot = (slot + 1) & mask;
    this.#slots[slot] = entry + 1;
  }

  #isEntry(at: number, { units, start, end }: WordPlace): boolean {
    const entries = this.#entries.data;
    const from = at === 0 ? 0 : (entries[at - FIELDS + LETTERS_END] as number);
    if ((entries[at + LETTERS_END] as number) - from !== end - start) return false;
    const letters = this.#letters.data;
    for (let i = start; i < end; i++)
      if (letters[from + i - start] !== lower(units[i] as number)) return false;
    return true;
  }
}

interface WordPlace {
  readonly units: Uint16Array;
  readonly start: number;
  readonly end: number;
}

function hashOf(units: Uint16Array, start: number, end: number): number {
  let hash = 0;
  for (let i = start; i < end; i++)
    hash = (Math.imul(hash ^ lower(units[i] as number), 0x01000193) + 0x9e3779b9) | 0;
  return hash ^ (hash >>> 15);
}
