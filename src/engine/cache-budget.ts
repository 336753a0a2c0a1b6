/**
 * How many keys and values may be held at once. The cache is a rectangle, slots times rows; a prefill of some of its
 * slots works on a copy of at least one of them, so that a cache of more than one slot needs room for one more.
 */
import { headSize, type ModelOptions } from "./model-options.ts";

/** Bytes of keys and values where nobody says otherwise: 2,000 rows of 44 slots of SmolLM2-135M. */
export const defaultCacheMemory = 4e9;

/** Bytes of the keys and values of one token in all layers, in fp32. */
export function tokenBytes(model: ModelOptions): number {
  return 2 * model.layers * model.keyValueHeads * headSize(model) * Float32Array.BYTES_PER_ELEMENT;
}

export class CacheBudget {
  /** Tokens, over all slots. */
  readonly tokens: number;

  constructor(model: ModelOptions, bytes: number) {
    this.tokens = Math.floor(bytes / tokenBytes(model));
  }

  /** Whether `slots` of `rows` each fit, with the copy that a prefill works on. */
  fits(slots: number, rows: number): boolean {
    return (slots > 1 ? slots + 1 : slots) * rows <= this.tokens;
  }

  /** Tokens that the copies of one prefill may hold beside a cache of this size. */
  copyTokens(slots: number, rows: number): number {
    return this.tokens - slots * rows;
  }
}
