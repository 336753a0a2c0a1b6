/**
 * Finds the words of a text and the codes that stand for each, without making a string of every word: letters are
 * hashed as they are scanned and compared with those of the words seen before (open addressing, FNV-like hash).
 * A word here is a run of letters, digits and marks before folding; analysis may make no code or several of it.
 */
import { GrowingArray } from "./growing-array.ts";

/** Longer words are not remembered. */
const LONGEST_WORD = 40;

export class WordTable {
  readonly #make: (word: string) => readonly number[];
  readonly #mostWords: number;
  /** Entry of each slot plus 1; 0 is a free slot. The size is a power of two, at least twice the entries. */
  #slots = new Uint32Array(1 << 12);
  readonly #hashes = new GrowingArray(Uint32Array);
  /** Where each entry's letters begin in `#letters`, and its codes in `#codes`; they end where the next entry's begin. */
  readonly #letterStarts = new GrowingArray(Uint32Array);
  readonly #letters = new GrowingArray(Uint16Array);
  readonly #codeStarts = new GrowingArray(Uint32Array);
  readonly #codes = new GrowingArray(Int32Array);
  /** The word read last: its letters, as many as are kept, and their hash. */
  readonly #word = new Uint16Array(LONGEST_WORD);
  #hash = 0;
  readonly #found = new GrowingArray(Int32Array);

  /**
   * `make` gives the codes of a word (32-bit integers); it is called once for each word, with ASCII letters in lower
   * case. After `mostWords` words everything is forgotten, so that memory stays bounded on a server.
   */
  constructor(make: (word: string) => readonly number[], mostWords = 1 << 21) {
    this.#make = make;
    this.#mostWords = mostWords;
    this.clear();
  }

  /** The codes of the words of `text`, in order; they are overwritten by the next call. */
  codesOf(text: string): Int32Array {
    const found = this.#found;
    found.length = 0;
    for (let start = 0; start < text.length; ) {
      const end = this.#readWord(text, start);
      if (end > start) this.#appendCodes(text, start, end);
      start = end + 1;
    }
    return found.data.subarray(0, found.length);
  }

  /** Forgets all words. */
  clear(): void {
    this.#slots = new Uint32Array(1 << 12);
    for (const array of [this.#hashes, this.#letterStarts, this.#letters, this.#codeStarts, this.#codes])
      array.length = 0;
    this.#letterStarts.push(0);
    this.#codeStarts.push(0);
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

  #appendCodes(text: string, start: number, end: number): void {
    const length = end - start;
    if (length > LONGEST_WORD) {
      for (const code of this.#make(text.slice(start, end))) this.#found.push(code);
      return;
    }
    const slots = this.#slots;
    const mask = slots.length - 1;
    let slot = this.#hash & mask;
    for (let entry = slots[slot] as number; entry !== 0; entry = slots[slot] as number) {
      if (this.#isEntry(entry - 1, length)) {
        this.#appendEntry(entry - 1);
        return;
      }
      slot = (slot + 1) & mask;
    }
    this.#add(length, slot);
  }

  #appendEntry(entry: number): void {
    const codes = this.#codes.data;
    const end = this.#codeStarts.data[entry + 1] as number;
    for (let i = this.#codeStarts.data[entry] as number; i < end; i++) this.#found.push(codes[i] as number);
  }

  #isEntry(entry: number, length: number): boolean {
    if (this.#hashes.data[entry] !== this.#hash) return false;
    const start = this.#letterStarts.data[entry] as number;
    if ((this.#letterStarts.data[entry + 1] as number) - start !== length) return false;
    const letters = this.#letters.data;
    for (let i = 0; i < length; i++) if (letters[start + i] !== this.#word[i]) return false;
    return true;
  }

  #add(length: number, slot: number): void {
    const word = this.#word.subarray(0, length);
    const codes = this.#make(String.fromCharCode(...word));
    for (const code of codes) this.#found.push(code);
    if (this.#hashes.length === this.#mostWords) {
      this.clear();
      return;
    }
    for (const letter of word) this.#letters.push(letter);
    for (const code of codes) this.#codes.push(code);
    this.#letterStarts.push(this.#letters.length);
    this.#codeStarts.push(this.#codes.length);
    this.#hashes.push(this.#hash);
    this.#slots[slot] = this.#hashes.length;
    if (this.#hashes.length * 2 > this.#slots.length) this.#enlarge();
  }

  #enlarge(): void {
    const slots = new Uint32Array(this.#slots.length * 2);
    const mask = slots.length - 1;
    for (let entry = 0; entry < this.#hashes.length; entry++) {
      let slot = (this.#hashes.data[entry] as number) & mask;
      while (slots[slot] !== 0) slot = (slot + 1) & mask;
      slots[slot] = entry + 1;
    }
    this.#slots = slots;
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
