/**
 * Keys and values of the sequences being decoded, slot by slot: (slots, keyValueHeads, capacity, attentionWidth) in each layer.
 * Row t of a slot's head belongs to the token at position t; slots have lengths of their own. JavaScript owns the buffers;
 * a graph reads and extends neighbouring slots in place.
 */
import { assert } from "../errors.ts";
import { releaseArrays } from "../shared/release-arrays.ts";
import { attentionWidth } from "./head-width.ts";
import { headSize, type ModelOptions } from "./model-options.ts";
import type { Feed } from "./session.ts";

const empty = new Float32Array();

export class KeyValueCache {
  readonly slots: number;
  readonly #heads: number;
  readonly #rowWidth: number;
  readonly #model: ModelOptions;
  #capacity: number;
  readonly #buffers: Float32Array[];

  constructor(model: ModelOptions, slots: number, capacity: number) {
    this.slots = slots;
    this.#heads = model.keyValueHeads;
    this.#rowWidth = attentionWidth(headSize(model));
    this.#model = model;
    this.#capacity = capacity;
    const length = slots * this.#slotLength;
    this.#buffers = Array.from({ length: 2 * model.layers }, () => new Float32Array(length));
  }

  /** Rows that fit into each slot. */
  get capacity(): number {
    return this.#capacity;
  }

  /** Arrays of the cache: entry 2 l holds keys of layer l, 2 l + 1 its values. */
  get bufferCount(): number {
    return this.#buffers.length;
  }

  /** `count` neighbouring slots of a buffer, (count, keyValueHeads, capacity, attentionWidth), without a copy. */
  view(buffer: number, first: number, count: number): Feed & { readonly data: Float32Array } {
    assert(first + count <= this.slots, `slots ${first} to ${first + count} of a cache of ${this.slots}`);
    const length = this.#slotLength;
    return {
      data: this.#buffer(buffer).subarray(first * length, (first + count) * length),
      shape: [count, this.#heads, this.#capacity, this.#rowWidth],
    };
  }

  /** The rows of one head of a slot, (capacity, attentionWidth), without a copy. */
  rows(buffer: number, slot: number, head: number): Float32Array {
    const length = this.#capacity * this.#rowWidth;
    const start = (slot * this.#heads + head) * length;
    return this.#buffer(buffer).subarray(start, start + length);
  }

  /**
   * A cache of another size with some of this one's slots and their rows; its slot i is the i-th that is kept. This cache
   * is empty afterwards: it gives up each buffer as soon as it is copied, so that little is ever held twice.
   */
  moved(
    kept: readonly { readonly slot: number; readonly rows: number }[],
    size: { readonly slots: number; readonly capacity: number },
  ): KeyValueCache {
    const target = new KeyValueCache(this.#model, size.slots, 0);
    target.#capacity = size.capacity;
    for (const index of this.#buffers.keys()) {
      target.#buffers[index] = new Float32Array(size.slots * target.#slotLength);
      for (const [to, { slot, rows }] of kept.entries()) this.#copyRows(index, slot, rows, { target, to });
      releaseArrays([this.#buffer(index)]);
      this.#buffers[index] = empty;
    }
    this.#capacity = 0;
    return target;
  }

  /** Gives its memory back; no run may be using it. */
  release(): void {
    releaseArrays(this.#buffers);
    this.#buffers.fill(empty);
    this.#capacity = 0;
  }

  /** Copies the first `rows` rows of slot `from` into slot `to`. */
  copySlot(from: number, to: number, rows: number): void {
    for (const index of this.#buffers.keys()) this.#copyRows(index, from, rows, { target: this, to });
  }

  get #slotLength(): number {
    return this.#heads * this.#capacity * this.#rowWidth;
  }

  #buffer(index: number): Float32Array {
    return this.#buffers[index] as Float32Array;
  }

  #copyRows(
    buffer: number,
    slot: number,
    rows: number,
    { target, to }: { readonly target: KeyValueCache; readonly to: number },
  ): void {
    for (let head = 0; head < this.#heads; head++) {
      const source = this.rows(buffer, slot, head).subarray(0, rows * this.#rowWidth);
      target.rows(buffer, to, head).set(source);
    }
  }
}
