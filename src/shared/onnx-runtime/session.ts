/**
 * One model in ONNX Runtime. Arrays are fed without a copy; results can be written into arrays that the caller owns.
 * A run computes on other threads, several at once where the caller asks for several; until it ends, its arrays are
 * not to be touched.
 */
import { assert } from "../../errors.ts";
import type { Pointer } from "./functions.ts";
import { type Feed, RuntimeLibrary, type Weight } from "./library.ts";

export type { Feed, Values, Weight } from "./library.ts";

export interface RuntimeSessionOptions {
  /** Threads inside one operator. */
  readonly threads: number;
  /** Values of initialisers that the model names but does not hold; they are read in place while the session lives. */
  readonly initializers?: ReadonlyMap<string, Weight>;
}

export class RuntimeSession {
  readonly inputNames: readonly string[];
  /** Sizes that depend on the run are -1. */
  readonly outputs: readonly { readonly name: string; readonly shape: readonly number[] }[];
  readonly #library: RuntimeLibrary;
  readonly #session: Pointer;
  /** Arrays that the library knows by address alone: those of the model, and those of runs under way. */
  readonly #held = new Set<unknown>();
  readonly #runs = new Set<Promise<unknown>>();
  #isClosed = false;

  private constructor(library: RuntimeLibrary, session: Pointer, options: RuntimeSessionOptions) {
    this.#library = library;
    this.#session = session;
    this.#held.add(options.initializers);
    this.inputNames = library.inputNames(session);
    this.outputs = library.outputs(session);
  }

  /**
   * Opens a model, or the file at a path. Throws `EngineError` when there is no runtime for this system, and `Error` with
   * ONNX Runtime's words when it refuses the model.
   */
  static open(model: Uint8Array | string, options: RuntimeSessionOptions): RuntimeSession {
    const library = RuntimeLibrary.get();
    const session = library.createSession(model, { initializers: new Map<string, Weight>(), ...options });
    return new RuntimeSession(library, session, options);
  }

  /**
   * Runs the model; `into` names arrays that receive an output in place. Returns the wanted outputs by name. Throws `Error`
   * with ONNX Runtime's words when the run fails, as when memory runs out.
   */
  async run(
    feeds: ReadonlyMap<string, Feed>,
    wanted: readonly string[],
    into: ReadonlyMap<string, Feed | Weight> = new Map(),
  ): Promise<ReadonlyMap<string, Feed>> {
    assert(!this.#isClosed, "a session was run after it was closed");
    const held = [feeds, into];
    const run = this.#run(feeds, wanted, into);
    this.#held.add(held);
    this.#runs.add(run);
    try {
      return await run;
    } finally {
      this.#held.delete(held);
      this.#runs.delete(run);
    }
  }

  async #run(
    feeds: ReadonlyMap<string, Feed>,
    wanted: readonly string[],
    into: ReadonlyMap<string, Feed | Weight>,
  ): Promise<ReadonlyMap<string, Feed>> {
    const library = this.#library;
    const inputs = new Map<string, Pointer>();
    const outputs = new Map<string, Pointer>(wanted.map((name) => [name, 0n]));
    let results: Pointer[] = [];
    try {
      for (const [name, feed] of feeds) inputs.set(name, library.tensor(feed));
      for (const [name, feed] of into) outputs.set(name, library.tensor(feed));
      results = await library.run(this.#session, inputs, outputs);
      return new Map(wanted.map((name, index) => [name, library.read(results[index] as Pointer)]));
    } finally {
      library.release(inputs.values());
      library.release(results.length > 0 ? results : outputs.values());
    }
  }

  /** Waits for the runs under way. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    await Promise.allSettled(this.#runs);
    this.#library.releaseSession(this.#session);
    this.#held.clear();
  }
}
