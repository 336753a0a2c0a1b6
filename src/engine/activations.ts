/**
 * Memory for what a micro-batch computes and is needed again: arrays by name that are used anew by every micro-batch
 * and grow when a larger one comes. Left to the garbage collector, each would wait for it beside its successor.
 */
import { releaseArrays } from "../shared/release-arrays.ts";

export class Activations {
  readonly #arrays = new Map<string, Float32Array>();

  /**
   * The first `length` numbers of the array of this name; their values are whatever was there. What was taken under the
   * name before is this array, or empty.
   */
  take(name: string, length: number): Float32Array {
    const known = this.#arrays.get(name);
    if (known && known.length >= length) return known.subarray(0, length);
    this.#arrays.delete(name);
    if (known) releaseArrays([known]);
    const fresh = new Float32Array(length);
    this.#arrays.set(name, fresh);
    return fresh;
  }

  /** Gives all memory back; what was taken before is empty then. */
  clear(): void {
    releaseArrays(this.#arrays.values());
    this.#arrays.clear();
  }
}
