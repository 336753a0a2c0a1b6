/**
 * Entries of an index in the order of the passages, in blocks, so that a list of tens of millions grows without
 * being copied; `distribute` sorts them by term.
 */

const BLOCK_BITS = 20;
const BLOCK = 1 << BLOCK_BITS;

export interface Distribution {
  /** (terms) Where the next entry of each term goes; changed on the way. */
  readonly next: Uint32Array;
  /** Position of the first passage. */
  readonly first: number;
  readonly passages: Uint32Array;
  readonly frequencies: Uint16Array;
}

export interface Frequencies {
  /** By term. */
  readonly frequencies: Uint32Array;
  readonly most: number;
}

export class EntryLog {
  length = 0;
  readonly #terms: Uint32Array[] = [];
  readonly #frequencies: Uint16Array[] = [];

  /**
   * Adds an entry for each of the first `count` terms, with their frequencies in a passage, at most `most`; clears
   * those.
   */
  add(terms: Uint32Array, count: number, { frequencies, most }: Frequencies): void {
    for (let i = 0; i < count; ) {
      const place = this.length & (BLOCK - 1);
      if (place === 0) this.#addBlock();
      const block = this.length >>> BLOCK_BITS;
      const end = Math.min(count, i + BLOCK - place);
      const blockTerms = this.#terms[block] as Uint32Array;
      const blockFrequencies = this.#frequencies[block] as Uint16Array;
      this.length += end - i;
      for (let to = place; i < end; i++, to++) {
        const term = terms[i] as number;
        blockTerms[to] = term;
        blockFrequencies[to] = Math.min(frequencies[term] as number, most);
        frequencies[term] = 0;
      }
    }
  }

  /** Counting sort by term; going through the passages in order keeps each term's entries in order. */
  distribute(termCounts: Uint32Array, target: Distribution): void {
    let passage = 0;
    let left = termCounts[0] ?? 0;
    for (let block = 0; block < this.#terms.length; block++) {
      const size = Math.min(BLOCK, this.length - block * BLOCK);
      const terms = (this.#terms[block] as Uint32Array).subarray(0, size);
      [passage, left] = distributeBlock(
        { terms, frequencies: this.#frequencies[block] as Uint16Array, termCounts },
        target,
        [passage, left],
      );
    }
  }

  #addBlock(): void {
    this.#terms.push(new Uint32Array(BLOCK));
    this.#frequencies.push(new Uint16Array(BLOCK));
  }
}

/** `at` is a passage (from 0) and how many of its entries are left; returns the same after the block. */
function distributeBlock(
  source: {
    readonly terms: Uint32Array;
    readonly frequencies: Uint16Array;
    readonly termCounts: Uint32Array;
  },
  { next, first, passages, frequencies }: Distribution,
  at: readonly [passage: number, left: number],
): [passage: number, left: number] {
  let [passage, left] = at;
  for (let i = 0; i < source.terms.length; i++) {
    while (left === 0) left = source.termCounts[++passage] as number;
    const term = source.terms[i] as number;
    const place = next[term] as number;
    next[term] = place + 1;
    passages[place] = first + passage;
    frequencies[place] = source.frequencies[i] as number;
    left--;
  }
  return [passage, left];
}
