/** How many keys and values may be held at once: the cache is a rectangle, slots times rows. */
import { attentionWidth } from "./head-width.ts";
import { headSize, type ModelOptions } from "./model-options.ts";

/** Bytes of keys and values where nobody says otherwise: 2,000 rows of 43 slots of SmolLM2-135M. */
export const defaultCacheMemory = 4e9;

/** Bytes of the keys and values of one token in all layers, in fp32. */
export function tokenBytes(model: ModelOptions): number {
  const width = attentionWidth(headSize(model));
  return 2 * model.layers * model.keyValueHeads * width * Float32Array.BYTES_PER_ELEMENT;
}

/** Rows are added in steps of this many, or of twice as many with each doubling of what there is: each time all are copied. */
const rowStep = 64;
/** Steps of a cache before they double. */
const stepsBeforeDoubling = 8;

/** Rows of a slot in a cache that has room for `rows` of them, which are at most the model's context; so is the result. */
export function steppedRows(model: ModelOptions, rows: number): number {
  const doublings = Math.max(0, Math.ceil(Math.log2(rows / (stepsBeforeDoubling * rowStep))));
  const step = rowStep * 2 ** doublings;
  return Math.min(Math.ceil(rows / step) * step, model.contextLength);
}

export class CacheBudget {
  /** Tokens, over all slots. */
  readonly tokens: number;

  constructor(model: ModelOptions, bytes: number) {
    this.tokens = Math.floor(bytes / tokenBytes(model));
  }

  /** Whether `slots` of `rows` each fit. */
  fits(slots: number, rows: number): boolean {
    return slots * rows <= this.tokens;
  }
}
