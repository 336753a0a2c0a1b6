/** What was opened on the way to something larger, to be closed in reverse order when it fails or is done with. */
export class Closers {
  #closers: (() => Promise<void> | void)[] = [];

  defer(close: () => Promise<void> | void): void {
    this.#closers.push(close);
  }

  /** Closes everything, also when a part fails to close; throws the first such failure. Later calls do nothing. */
  async close(): Promise<void> {
    const failures: unknown[] = [];
    for (const close of this.#closers.splice(0).reverse())
      try {
        await close();
      } catch (error) {
        failures.push(error);
      }
    if (failures.length > 0) throw failures[0];
  }
}
