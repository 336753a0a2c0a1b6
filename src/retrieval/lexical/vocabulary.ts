/**
 * The terms of an index, sorted by their UTF-16 code units and numbered in that order. They are kept as the bytes
 * of a text file (UTF-8, a line each) with the start of every line, and found by halving: millions of terms open
 * without a string for each.
 */

export class Vocabulary {
  readonly count: number;
  /** The lines, each with its end. */
  readonly bytes: Buffer;
  /** (terms + 1) Where each line begins. */
  readonly lineStarts: Uint32Array;

  constructor(bytes: Buffer, lineStarts: Uint32Array) {
    this.bytes = bytes;
    this.lineStarts = lineStarts;
    this.count = lineStarts.length - 1;
  }

  /** The number of a term, or -1. */
  find(term: string): number {
    let low = 0;
    let high = this.count - 1;
    while (low <= high) {
      const middle = (low + high) >>> 1;
      const other = this.at(middle);
      if (other === term) return middle;
      if (other < term) low = middle + 1;
      else high = middle - 1;
    }
    return -1;
  }

  /** The term of a number from 0 to `count` - 1. */
  at(number: number): string {
    return this.bytes.toString(
      "utf8",
      this.lineStarts[number] as number,
      (this.lineStarts[number + 1] as number) - 1,
    );
  }

  all(): string[] {
    return this.count === 0 ? [] : this.bytes.toString("utf8").slice(0, -1).split("\n");
  }
}

/** The vocabulary of terms that are sorted already. */
export function vocabularyOf(sorted: readonly string[]): Vocabulary {
  const bytes = Buffer.from(sorted.map((term) => `${term}\n`).join(""));
  return new Vocabulary(bytes, lineStartsOf(bytes, sorted.length));
}

/** Where each of `count` lines begins, and where the last one ends. */
function lineStartsOf(bytes: Buffer, count: number): Uint32Array {
  const starts = new Uint32Array(count + 1);
  for (let line = 0; line < count; line++) starts[line + 1] = bytes.indexOf(10, starts[line] as number) + 1;
  return starts;
}
