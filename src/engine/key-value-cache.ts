/**
 * Keys and values of the sequences being decoded, time-major per layer: (time, slots * keyValueHeads, headDim).
 * Row t of a slot belongs to the token at position t. JavaScript owns the buffers; a graph reads their first
 * rows without a copy. Slots have lengths of their own; rows beyond a slot's length are masked by the caller.
 */
import { assert } from "../errors.ts";
import { headSize, type ModelOptions } from "./model-options.ts";

export class KeyValueCache {
  readonly slots: number;
  /** Rows that fit. */
  readonly capacity: number;
  /** Floats of one slot in one row: keyValueHeads * headDim. */
  readonly slotWidth: number;
  /** Keys and values of each layer: entry 2 l holds keys, 2 l + 1 values. */
  readonly buffers: readonly Float32Array[];

  constructor(model: ModelOptions, slots: number, capacity: number) {
    this.slots = slots;
    this.capacity = capacity;
    this.slotWidth = model.keyValueHeads * headSize(model);
    const length = capacity * slots * this.slotWidth;
    this.buffers = Array.from({ length: 2 * model.layers }, () => new Float32Array(length));
  }

  /** The first `rows` rows of a buffer, without a copy. */
  view(buffer: number, rows: number): Float32Array {
    assert(rows <= this.capacity, `${rows} rows of a cache of ${this.capacity}`);
    return (this.buffers[buffer] as Float32Array).subarray(0, rows * this.slots * this.slotWidth);
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
