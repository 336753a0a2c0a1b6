/**
 * Memory for what a micro-batch computes and is needed again: arrays by name that are used anew by every micro-batch
 * and grow when a larger one comes. Left to the garbage collector, each would wait for it beside its successor.
 */
export class Activations {
  readonly #arrays = new Map<string, Float32Array>();

  /** The first `length` numbers of the array of this name; their values are whatever was there. */
  take(name: string, length: number): Float32Array {
    const known = this.#arrays.get(name);
    if (known && known.length >= length) return known.subarray(0, length);
    this.#arrays.delete(name);
    const fresh = new Float32Array(length);
    this.#arrays.set(name, fresh);
    return fresh;
  }

  clear(): void {
    this.#arrays.clear();
  }
}
