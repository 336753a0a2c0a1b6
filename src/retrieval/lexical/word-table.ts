/**
 * Finds the words of a text and the codes that stand for each, without making a string of every word: letters are
 * hashed as they are scanned and compared with those of the words seen before (open addressing, FNV-like hash).
 * A word here is a run of letters, digits and marks before folding; analysis may make no code or several of it.
 */
import { GrowingArray } from "./growing-array.ts";

/** Longer words are not remembered. */
const LONGEST_WORD = 40;
/** Fields of an entry. */
const FIELDS = 4;
const HASH = 0;
const LETTERS_END = 1;
/** The code when there is one, else where the codes begin in `#codes`. */
const CODE = 2;
const CODE_COUNT = 3;

export class WordTable {
  readonly #make: (word: string) => readonly number[];
  readonly #mostWords: number;
  /** Entry of each slot plus 1; 0 is a free slot. The size is a power of two, at least twice the entries. */
  #slots = new Uint32Array(1 << 12);
  /** (words, FIELDS) Together, since they are read together. */
  readonly #entries = new GrowingArray(Int32Array);
  readonly #letters = new GrowingArray(Uint16Array);
  readonly #codes = new GrowingArray(Int32Array);
  #count = 0;
  /** The text at hand as UTF-16 code units. */
  #bytes = Buffer.alloc(1 << 13);
  #units = unitsOf(this.#bytes);
  /** The codes found in it. Hot loops write typed arrays themselves: a shared `push` is compiled for all their kinds. */
  #found = new Int32Array(1 << 12);
  #foundCount = 0;

  /**
   * `make` gives the codes of a word (32-bit integers); it is called once for each word, with ASCII letters in lower
   * case. After `mostWords` words everything is forgotten, so that memory stays bounded on a server.
   */
  constructor(make: (word: string) => readonly number[], mostWords = 1 << 21) {
    this.#make = make;
    this.#mostWords = mostWords;
  }

  /** The codes of the words of `text`, in order; they are overwritten by the next call. */
  codesOf(text: string): Int32Array {
    this.#read(text);
    const units = this.#units;
    this.#foundCount = 0;
    let hash = 0;
    let start = 0;
    for (let at = 0; at <= text.length; at++) {
      const letter = at === text.length ? 0 : letterOf(units[at] as number);
      if (letter !== 0) hash = (Math.imul(hash ^ letter, 0x01000193) + 0x9e3779b9) | 0;
      else {
        if (at > start) this.#appendCodes(start, at, hash ^ (hash >>> 15));
        hash = 0;
        start = at + 1;
      }
    }
    return this.#found.subarray(0, this.#foundCount);
  }

  /** Forgets all words. */
  clear(): void {
    this.#slots = new Uint32Array(1 << 12);
    for (const array of [this.#entries, this.#letters, this.#codes]) array.length = 0;
    this.#count = 0;
  }

  #read(text: string): void {
    if (text.length > this.#units.length) {
      this.#bytes = Buffer.alloc(text.length * 4);
      this.#units = unitsOf(this.#bytes);
    }
    this.#bytes.write(text, 0, "utf16le");
    // A word has a letter at least; words of several codes ask for more room themselves.
    if (text.length > this.#found.length) this.#found = new Int32Array(text.length * 2);
  }

  /** Appends the codes of the word from `start` to `end`. */
  #appendCodes(start: number, end: number, hash: number): void {
    const length = end - start;
    if (length > LONGEST_WORD) {
      this.#appendAll(this.#make(this.#wordAt(start, length)));
      return;
    }
    const slots = this.#slots;
    const entries = this.#entries.data;
    const mask = slots.length - 1;
    let slot = hash & mask;
    for (let entry = slots[slot] as number; entry !== 0; entry = slots[slot] as number) {
      const at = (entry - 1) * FIELDS;
      if (entries[at + HASH] === hash && this.#isEntry(at, start, length)) {
        this.#appendEntry(at);
        return;
      }
      slot = (slot + 1) & mask;
    }
    this.#add(this.#wordAt(start, length), hash, slot);
  }

  #wordAt(start: number, length: number): string {
    let word = "";
    if (length <= LONGEST_WORD)
      for (let i = start; i < start + length; i++)
        word += String.fromCharCode(letterOf(this.#units[i] as number));
    else {
      const letters = this.#units.slice(start, start + length).map(letterOf);
      for (let i = 0; i < length; i += 4096) word += String.fromCharCode(...letters.subarray(i, i + 4096));
    }
    return word;
  }

  #appendEntry(at: number): void {
    const entries = this.#entries.data;
    const count = entries[at + CODE_COUNT] as number;
    const code = entries[at + CODE] as number;
    if (count === 1) this.#found[this.#foundCount++] = code;
    else this.#appendAll(this.#codes.data.subarray(code, code + count));
  }

  #appendAll(codes: ArrayLike<number>): void {
    // Each word to come needs two characters of the text, or is the last.
    const needed = this.#foundCount + codes.length + this.#units.length;
    if (needed > this.#found.length) {
      const larger = new Int32Array(needed * 2);
      larger.set(this.#found);
      this.#found = larger;
    }
    this.#found.set(codes, this.#foundCount);
    this.#foundCount += codes.length;
  }

  #isEntry(at: number, start: number, length: number): boolean {
    const entries = this.#entries.data;
    const from = at === 0 ? 0 : (entries[at - FIELDS + LETTERS_END] as number);
    if ((entries[at + LETTERS_END] as number) - from !== length) return false;
    const letters = this.#letters.data;
    const units = this.#units;
    for (let i = 0; i < length; i++)
      if (letters[from + i] !== letterOf(units[start + i] as number)) return false;
    return true;
  }

  #add(word: string, hash: number, slot: number): void {
    const codes = this.#make(word);
    this.#appendAll(codes);
    if (this.#count === this.#mostWords) {
      this.clear();
      return;
    }
    for (let i = 0; i < word.length; i++) this.#letters.push(word.charCodeAt(i));
    this.#entries.push(hash);
    this.#entries.push(this.#letters.length);
    this.#entries.push(codes.length === 1 ? (codes[0] as number) : this.#codes.length);
    this.#entries.push(codes.length);
    if (codes.length > 1) for (const code of codes) this.#codes.push(code);
    this.#slots[slot] = ++this.#count;
    if (this.#count * 2 > this.#slots.length) this.#enlarge();
  }

  #enlarge(): void {
    const slots = new Uint32Array(this.#slots.length * 2);
    const mask = slots.length - 1;
    for (let entry = 0; entry < this.#count; entry++) {
      let slot = (this.#entries.data[entry * FIELDS + HASH] as number) & mask;
      while (slots[slot] !== 0) slot = (slot + 1) & mask;
      slots[slot] = entry + 1;
    }
    this.#slots = slots;
  }
}

function unitsOf(bytes: Buffer): Uint16Array {
  return new Uint16Array(bytes.buffer, bytes.byteOffset, bytes.length / 2);
}

const UNKNOWN = 0;
/** No letter has this code. */
const OTHER = 1;
/** Each UTF-16 code unit as a letter of a word, or `OTHER`; what is not ASCII is found out when it is first met. */
const letters = new Uint16Array(1 << 16);
for (let code = 0; code < 128; code++) {
  const character = String.fromCharCode(code).toLowerCase();
  letters[code] = /[a-z0-9]/.test(character) ? character.charCodeAt(0) : OTHER;
}

/** The code unit if it may be part of a word, ASCII letters in lower case; else 0. Halves of a pair count as letters. */
function letterOf(code: number): number {
  let letter = letters[code] as number;
  if (letter === UNKNOWN) {
    letter = isLetter(code) ? code : OTHER;
    letters[code] = letter;
  }
  return letter === OTHER ? 0 : letter;
}

function isLetter(code: number): boolean {
  return (code >= 0xd800 && code <= 0xdfff) || /[\p{L}\p{N}\p{M}]/u.test(String.fromCharCode(code));
}
