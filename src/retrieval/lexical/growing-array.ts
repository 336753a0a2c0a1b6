/** A typed array that doubles when it is full; what was not written is 0. */
export class GrowingArray<T extends Uint32Array | Uint16Array | Int32Array> {
  readonly #type: new (
    length: number,
  ) => T;
  data: T;
  /** One more than the last index written. */
  length = 0;

  constructor(type: new (length: number) => T) {
    this.#type = type;
    this.data = new type(1024);
  }

  push(value: number): void {
    if (this.length === this.data.length) this.#grow(this.length + 1);
    this.data[this.length++] = value;
  }

  at(index: number): number {
    return this.data[index] ?? 0;
  }

  set(index: number, value: number): void {
    if (index >= this.data.length) this.#grow(index + 1);
    this.data[index] = value;
    this.length = Math.max(this.length, index + 1);
  }

  /** What was written, without a copy; valid until more is. */
  get written(): T {
    return this.data.subarray(0, this.length) as T;
  }

  trimmed(): T {
    return this.data.slice(0, this.length) as T;
  }

  #grow(needed: number): void {
    const larger = new this.#type(Math.max(needed, this.data.length * 2));
    larger.set(this.data);
    this.data = larger;
  }
}
