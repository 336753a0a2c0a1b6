/** A binary heap: the element that comes before all others is taken first; the order of equal ones is not defined. */
export class Heap<T> {
  readonly #values: T[] = [];
  readonly #comesBefore: (a: T, b: T) => boolean;

  constructor(comesBefore: (a: T, b: T) => boolean) {
    this.#comesBefore = comesBefore;
  }

  push(value: T): void {
    const values = this.#values;
    let i = values.push(value) - 1;
    while (i > 0) {
      const parent = (i - 1) >> 1;
      if (!this.#comesBefore(value, values[parent] as T)) break;
      values[i] = values[parent] as T;
      i = parent;
    }
    values[i] = value;
  }

  /** Removes and returns the first element; undefined when empty. */
  pop(): T | undefined {
    const values = this.#values;
    const top = values[0];
    const last = values.pop();
    if (values.length === 0 || last === undefined) return top;
    let i = 0;
    for (let child = 1; child < values.length; child = 2 * i + 1) {
      if (child + 1 < values.length && this.#comesBefore(values[child + 1] as T, values[child] as T)) child++;
      if (!this.#comesBefore(values[child] as T, last)) break;
      values[i] = values[child] as T;
      i = child;
    }
    values[i] = last;
    return top;
  }
}
