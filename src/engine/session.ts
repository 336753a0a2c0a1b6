/**
 * Runs a `Graph` with ONNX Runtime on the CPU. Arrays are fed without a copy and results can be written into
 * arrays that the caller owns, so that weights, gradients and moments live in JavaScript and are shared by all
 * graphs. A run computes on other threads; until it ends, its arrays are not to be touched.
 */
import { assert, EngineError } from "../errors.ts";
import type { Graph, Tensor } from "./graph.ts";
import { encodeOnnx } from "./onnx.ts";
import type { Pointer } from "./runtime-functions.ts";
import { type Feed, RuntimeLibrary, type Weight } from "./runtime-library.ts";

export type { Feed, Values, Weight } from "./runtime-library.ts";

export interface SessionOptions {
  /** Threads inside one operator. */
  readonly threads: number;
  /** The values of the graph's weights, by name. */
  readonly weights?: ReadonlyMap<string, Weight>;
}

export class Session {
  readonly #library: RuntimeLibrary;
  readonly #session: Pointer;
  /** The session reads these in place. */
  readonly #weights: ReadonlyMap<string, Weight>;
  /** Arrays of runs under way, which the library knows by address alone. */
  readonly #held = new Set<unknown>();
  #isClosed = false;

  private constructor(library: RuntimeLibrary, session: Pointer, weights: ReadonlyMap<string, Weight>) {
    this.#library = library;
    this.#session = session;
    this.#weights = weights;
  }

  /** Throws `EngineError` when ONNX Runtime refuses the graph. */
  static async create(graph: Graph, outputs: readonly Tensor[], options: SessionOptions): Promise<Session> {
    const library = RuntimeLibrary.get();
    const weights = new Map(graph.weights.map(({ name }) => [name, weight(name, options.weights)]));
    const { threads } = options;
    try {
      const session = library.createSession(encodeOnnx(graph, outputs), { threads, initializers: weights });
      return new Session(library, session, weights);
    } catch (cause) {
      throw new EngineError(`ONNX Runtime refused a graph: ${(cause as Error).message}`, { cause });
    }
  }

  /**
   * Runs the graph; `into` names arrays that receive an output in place. Returns all wanted outputs by name.
   * Throws `EngineError` when the run fails, as when memory runs out.
   */
  async run(
    feeds: ReadonlyMap<string, Feed>,
    wanted: readonly string[],
    into: ReadonlyMap<string, Feed> = new Map(),
  ): Promise<ReadonlyMap<string, Feed>> {
    assert(!this.#isClosed, "a session was run after it was closed");
    const library = this.#library;
    const inputs = new Map<string, Pointer>();
    const outputs = new Map<string, Pointer>(wanted.map((name) => [name, 0n]));
    let results: Pointer[] = [];
    const held = [feeds, into];
    this.#held.add(held);
    try {
      for (const [name, feed] of feeds) inputs.set(name, library.tensor(feed));
      for (const [name, feed] of into) outputs.set(name, library.tensor(feed));
      results = await library.run(this.#session, inputs, outputs);
      return new Map(wanted.map((name, index) => [name, library.read(results[index] as Pointer)]));
    } catch (cause) {
      throw new EngineError(`ONNX Runtime failed: ${(cause as Error).message}`, { cause });
    } finally {
      this.#held.delete(held);
      library.release(inputs.values());
      library.release(results.length > 0 ? results : outputs.values());
    }
  }

  async close(): Promise<void> {
    assert(this.#held.size === 0, "a session was closed while it ran");
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#library.releaseSession(this.#session);
  }
}

function weight(name: string, weights: SessionOptions["weights"]): Weight {
  const feed = weights?.get(name);
  assert(feed, `the weight ${name} has no values`);
  return feed;
}
