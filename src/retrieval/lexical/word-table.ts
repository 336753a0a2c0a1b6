/**
 * Finds the words of a text and the codes that stand for each, without making a string of every word. Most words are ten
 * plain letters or fewer: they are packed into two numbers of 30 bits, six a letter, which are looked up in a table with
 * open addressing; the others go by their letters (`long-words.ts`).
 * A word here is a run of letters, digits and marks before folding; analysis may make no code or several of it.
 */
import { GrowingArray } from "./growing-array.ts";
import { kindOf, LAST_PLAIN, lower, SEPARATOR } from "./letters.ts";
import { LongWords } from "./long-words.ts";

/** Longer words are not remembered. */
const LONGEST_WORD = 40;
const LONGEST_PACKED = 10;
const PACKED_BITS = 0x3fffffff;
/** Fields of an entry of a packed word; its letters are 0 and 1. */
const FIELDS = 4;
const HIGH = 1;
/** The code when there is one, else where the codes begin in `#codes`. */
const CODE = 2;
/** One more than the number of codes; 0 where the slot is free. */
const COUNT = 3;
const ONE_CODE = 2;

export class WordTable {
  readonly #make: (word: string) => readonly number[];
  readonly #mostWords: number;
  /** (slots, FIELDS) The number of slots is a power of two, at least twice the entries. */
  #packed = new Int32Array(FIELDS << 12);
  #packedCount = 0;
  readonly #long = new LongWords();
  readonly #codes = new GrowingArray(Int32Array);
  /** The text at hand as UTF-16 code units, with a separator behind it. */
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
    const { length } = text;
    this.#foundCount = 0;
    for (let at = 0; at < length; at++)
      if (kindOf(units[at] as number) !== SEPARATOR) at = this.#takeWord(at);
    return this.#found.subarray(0, this.#foundCount);
  }

  /** Forgets all words. */
  clear(): void {
    this.#packed = new Int32Array(FIELDS << 12);
    this.#packedCount = 0;
    this.#long.clear();
    this.#codes.length = 0;
  }

  #read(text: string): void {
    if (text.length >= this.#units.length) {
      this.#bytes = Buffer.alloc(text.length * 4);
      this.#units = unitsOf(this.#bytes);
    }
    this.#bytes.write(text, 0, "utf16le");
    this.#units[text.length] = 0;
    // A word has a letter at least; words of several codes ask for more room themselves.
    if (text.length > this.#found.length) this.#found = new Int32Array(text.length * 2);
  }

  /** Appends the codes of the word that begins at `start`; returns where it ends, which is at a separator. */
  #takeWord(start: number): number {
    const units = this.#units;
    let end = start;
    let low = 0;
    let high = 0;
    let greatest = 0;
    for (let kind = kindOf(units[end] as number); kind !== SEPARATOR; kind = kindOf(units[++end] as number)) {
      if (kind > greatest) greatest = kind;
      high = ((high << 6) | (low >>> 24)) & PACKED_BITS;
      low = ((low << 6) | kind) & PACKED_BITS;
    }
    if (greatest > LAST_PLAIN || end - start > LONGEST_PACKED) this.#takeLong(start, end);
    else {
      const entry = this.#slotOf(low, high) * FIELDS;
      const count = this.#packed[entry + COUNT] as number;
      if (count === ONE_CODE) this.#found[this.#foundCount++] = this.#packed[entry + CODE] as number;
      else if (count > 0) this.#appendCodes(this.#packed[entry + CODE] as number, count - 1);
      else this.#addPacked(this.#wordAt(start, end), entry, { low, high });
    }
    return end;
  }

  /** The slot of a packed word, or the free one where it belongs. */
  #slotOf(low: number, high: number): number {
    const table = this.#packed;
    const mask = table.length / FIELDS - 1;
    const mixed = Math.imul(low, 0x9e3779b1) ^ Math.imul(high, 0x85ebca6b);
    let slot = (mixed ^ (mixed >>> 15)) & mask;
    for (;;) {
      const entry = slot * FIELDS;
      if (table[entry + COUNT] === 0 || (table[entry] === low && table[entry + HIGH] === high)) return slot;
      slot = (slot + 1) & mask;
    }
  }

  #takeLong(start: number, end: number): void {
    if (end - start > LONGEST_WORD) {
      this.#appendAll(this.#make(this.#wordAt(start, end)));
      return;
    }
    const entry = this.#long.find(this.#units, start, end);
    if (entry < 0) this.#addLong(this.#wordAt(start, end));
    else {
      const code = this.#long.codeOf(entry);
      const count = this.#long.countOf(entry);
      if (count === 1) this.#found[this.#foundCount++] = code;
      else this.#appendCodes(code, count);
    }
  }

  #wordAt(start: number, end: number): string {
    let word = "";
    if (end - start <= LONGEST_WORD)
      for (let i = start; i < end; i++) word += String.fromCharCode(lower(this.#units[i] as number));
    else
      for (let i = start; i < end; i += 4096)
        word += String.fromCharCode(...this.#units.slice(i, Math.min(end, i + 4096)).map(lower));
    return word;
  }

  #appendCodes(from: number, count: number): void {
    this.#appendAll(this.#codes.data.subarray(from, from + count));
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

  #addPacked(
    word: string,
    entry: number,
    { low, high }: { readonly low: number; readonly high: number },
  ): void {
    const codes = this.#make(word);
    this.#appendAll(codes);
    if (this.#isFull()) return;
    this.#packed.set([low, high, this.#keep(codes), codes.length + 1], entry);
    this.#packedCount++;
    if (this.#packedCount * 2 * FIELDS > this.#packed.length) this.#enlarge();
  }

  #addLong(word: string): void {
    const codes = this.#make(word);
    this.#appendAll(codes);
    if (!this.#isFull()) this.#long.add(word, this.#keep(codes), codes.length);
  }

  /** Forgets everything where there are too many words, and says so. */
  #isFull(): boolean {
    if (this.#packedCount + this.#long.count < this.#mostWords) return false;
    this.clear();
    return true;
  }

  /** The only code, or else where the codes are kept. */
  #keep(codes: readonly number[]): number {
    if (codes.length === 1) return codes[0] as number;
    const from = this.#codes.length;
    for (const code of codes) this.#codes.push(code);
    return from;
  }

  #enlarge(): void {
    const before = this.#packed;
    this.#packed = new Int32Array(before.length * 2);
    for (let entry = 0; entry < before.length; entry += FIELDS) {
      if (before[entry + COUNT] === 0) continue;
      const slot = this.#slotOf(before[entry] as number, before[entry + HIGH] as number);
      this.#packed.set(before.subarray(entry, entry + FIELDS), slot * FIELDS);
    }
  }
}

function unitsOf(bytes: Buffer): Uint16Array {
  return new Uint16Array(bytes.buffer, bytes.byteOffset, bytes.length / 2);
}
