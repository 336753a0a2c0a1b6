/**
 * Finds the words of a text and what is known about each, without making a string of every word: letters are
 * hashed as they are scanned and compared with those of the words seen before (open addressing, FNV-like hash).
 * A word here is a run of letters, digits and marks before folding; analysis may make none or several of it.
 */
import { GrowingArray } from "./growing-array.ts";

/** Longer words are not remembered. */
const LONGEST_WORD = 40;

export class WordTable<T> {
  readonly #make: (word: string) => T;
  readonly #mostWords: number;
  /** Entry of each slot plus 1; 0 is a free slot. The size is a power of two, at least twice the entries. */
  #slots = new Uint32Array(1 << 12);
  readonly #hashes = new GrowingArray(Uint32Array);
  /** Where each entry's letters begin in `#letters`; they end where the next entry's begin. */
  readonly #starts = new GrowingArray(Uint32Array);
  readonly #letters = new GrowingArray(Uint16Array);
  #values: T[] = [];
  /** The word read last: its letters, as many as are kept, and their hash. */
  readonly #word = new Uint16Array(LONGEST_WORD);
  #hash = 0;

  /**
   * `make` says what is known about a word; it is called once for each word, with ASCII letters in lower case. After
   * `mostWords` words everything is forgotten, so that memory stays bounded on a server.
   */
  constructor(make: (word: string) => T, mostWords = 1 << 21) {
    this.#make = make;
    this.#mostWords = mostWords;
    this.#starts.push(0);
  }

  /** What is known about each word of `text`, in order. */
  valuesOf(text: string): T[] {
    const values: T[] = [];
    for (let start = 0; start < text.length; ) {
      const end = this.#readWord(text, start);
      if (end > start) values.push(this.#valueOf(text, start, end));
      start = end + 1;
    }
    return values;
  }

  /** Reads letters from `start` on; returns where the word ends, which is `start` when there is none. */
  #readWord(text: string, start: number): number {
    const word = this.#word;
    let hash = 0;
    let at = start;
    for (; at < text.length; at++) {
      const letter = letterOf(text.charCodeAt(at));
      if (letter === 0) break;
      if (at - start < LONGEST_WORD) word[at - start] = letter;
      hash = (Math.imul(hash ^ letter, 0x01000193) + 0x9e3779b9) | 0;
    }
    this.#hash = (hash ^ (hash >>> 15)) >>> 0;
    return at;
  }

  #valueOf(text: string, start: number, end: number): T {
    const length = end - start;
    if (length > LONGEST_WORD) return this.#make(text.slice(start, end));
    const mask = this.#slots.length - 1;
    let slot = this.#hash & mask;
    for (let entry = this.#slots[slot] as number; entry !== 0; entry = this.#slots[slot] as number) {
      if (this.#isEntry(entry - 1, length)) return this.#values[entry - 1] as T;
      slot = (slot + 1) & mask;
    }
    return this.#add(length, slot);
  }

  #isEntry(entry: number, length: number): boolean {
    if (this.#hashes.data[entry] !== this.#hash) return false;
    const start = this.#starts.data[entry] as number;
    if ((this.#starts.data[entry + 1] as number) - start !== length) return false;
    const letters = this.#letters.data;
    for (let i = 0; i < length; i++) if (letters[start + i] !== this.#word[i]) return false;
    return true;
  }

  #add(length: number, slot: number): T {
    const word = this.#word.subarray(0, length);
    const value = this.#make(String.fromCharCode(...word));
    if (this.#values.length === this.#mostWords) {
      this.#clear();
      return value;
    }
    for (const letter of word) this.#letters.push(letter);
    this.#starts.push(this.#letters.length);
    this.#hashes.push(this.#hash);
    this.#slots[slot] = this.#values.push(value);
    if (this.#values.length * 2 > this.#slots.length) this.#enlarge();
    return value;
  }

  #enlarge(): void {
    const slots = new Uint32Array(this.#slots.length * 2);
    const mask = slots.length - 1;
    for (let entry = 0; entry < this.#values.length; entry++) {
      let slot = (this.#hashes.data[entry] as number) & mask;
      while (slots[slot] !== 0) slot = (slot + 1) & mask;
      slots[slot] = entry + 1;
    }
    this.#slots = slots;
  }

  #clear(): void {
    this.#slots.fill(0);
    this.#hashes.length = 0;
    this.#starts.length = 1;
    this.#letters.length = 0;
    this.#values = [];
  }
}

const UNKNOWN = 0;
const LETTER = 1;
const OTHER = 2;
/** What each UTF-16 code unit is, found out when it is first met. */
const kinds = new Uint8Array(1 << 16);

/** The code unit if it may be part of a word, ASCII letters in lower case; else 0. Halves of a pair count as letters. */
function letterOf(code: number): number {
  if (code < 128) {
    if (code >= 97 ? code <= 122 : code >= 48 && code <= 57) return code;
    return code >= 65 && code <= 90 ? code + 32 : 0;
  }
  if (kinds[code] === UNKNOWN) kinds[code] = isLetter(code) ? LETTER : OTHER;
  return kinds[code] === LETTER ? code : 0;
}

function isLetter(code: number): boolean {
  return (code >= 0xd800 && code <= 0xdfff) || /[\p{L}\p{N}\p{M}]/u.test(String.fromCharCode(code));
}
