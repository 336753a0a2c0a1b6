/**
 * Keys and values of the sequences being decoded, time-major per layer: (time, slots * keyValueHeads, headDim).
 * Row t of a slot belongs to the token at position t. JavaScript owns the buffers; a graph reads their first
 * rows without a copy. Slots have lengths of their own; rows beyond a slot's length are masked by the caller.
 */
import { assert } from "../errors.ts";
import { releaseArrays } from "../shared/release-arrays.ts";
import { headSize, type ModelOptions } from "./model-options.ts";

const empty = new Float32Array();

export class KeyValueCache {
  readonly slots: number;
  /** Floats of one slot in one row: keyValueHeads * headDim. */
  readonly slotWidth: number;
  readonly #model: ModelOptions;
  #capacity: number;
  readonly #buffers: Float32Array[];

  constructor(model: ModelOptions, slots: number, capacity: number) {
    this.slots = slots;
    this.slotWidth = model.keyValueHeads * headSize(model);
    this.#model = model;
    this.#capacity = capacity;
    const length = capacity * slots * this.slotWidth;
    this.#buffers = Array.from({ length: 2 * model.layers }, () => new Float32Array(length));
  }

  /** Rows that fit. */
  get capacity(): number {
    return this.#capacity;
  }

  /** Keys and values of each layer: entry 2 l holds keys, 2 l + 1 values. */
  get buffers(): readonly Float32Array[] {
    return this.#buffers;
  }

  /** The first `rows` rows of a buffer, without a copy. */
  view(buffer: number, rows: number): Float32Array {
    assert(rows <= this.capacity, `${rows} rows of a cache of ${this.capacity}`);
    return (this.buffers[buffer] as Float32Array).subarray(0, rows * this.slots * this.slotWidth);
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
    const length = size.capacity * size.slots * this.slotWidth;
    target.#capacity = size.capacity;
    const isInPlace = size.slots === this.slots && kept.every(({ slot }, index) => slot === index);
    for (const [index, source] of this.#buffers.entries()) {
      const buffer = new Float32Array(length);
      if (isInPlace) buffer.set(source.subarray(0, Math.min(length, source.length)));
      else
        for (const [to, { slot, rows }] of kept.entries()) {
          copySlotRows(
            { buffer: source, stride: this.slots * this.slotWidth, start: slot * this.slotWidth },
            { buffer, stride: size.slots * this.slotWidth, start: to * this.slotWidth },
            { rows, width: this.slotWidth },
          );
        }
      target.#buffers[index] = buffer;
      this.#buffers[index] = empty;
      releaseArrays([source]);
    }
    this.#capacity = 0;
    return target;
  }

  /** Gives its memory back; no run may be reading it. */
  release(): void {
    releaseArrays(this.#buffers);
    this.#buffers.fill(empty);
    this.#capacity = 0;
  }

  /** Copies the first `rows` rows of slot `from` of `source` into slot `to`. */
  copySlot(source: KeyValueCache, from: number, to: number, rows: number): void {
    for (const [index, target] of this.buffers.entries()) {
      copySlotRows(
        {
          buffer: source.buffers[index] as Float32Array,
          stride: source.slots * this.slotWidth,
          start: from * this.slotWidth,
        },
        { buffer: target, stride: this.slots * this.slotWidth, start: to * this.slotWidth },
        { rows, width: this.slotWidth },
      );
    }
  }

  /**
   * Writes `count` new tokens of one slot, from position `start` on. `fresh` holds the new tokens of all
   * sequences of a call, (sequences, chunk, slotWidth); `sequence` is this slot's.
   */
  append(buffer: number, slot: number, fresh: FreshRows): void {
    copySlotRows(
      { buffer: fresh.data, stride: this.slotWidth, start: fresh.sequence * fresh.chunk * this.slotWidth },
      {
        buffer: this.buffers[buffer] as Float32Array,
        stride: this.slots * this.slotWidth,
        start: (fresh.start * this.slots + slot) * this.slotWidth,
      },
      { rows: fresh.count, width: this.slotWidth },
    );
  }
}

export interface FreshRows {
  readonly data: Float32Array;
  readonly sequence: number;
  readonly chunk: number;
  readonly start: number;
  readonly count: number;
}

interface Rows {
  readonly buffer: Float32Array;
  readonly stride: number;
  readonly start: number;
}

function copySlotRows(from: Rows, to: Rows, size: { readonly rows: number; readonly width: number }): void {
  for (let row = 0; row < size.rows; row++) {
    const start = from.start + row * from.stride;
    to.buffer.set(from.buffer.subarray(start, start + size.width), to.start + row * to.stride);
  }
}
