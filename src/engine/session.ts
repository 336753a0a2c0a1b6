/**
 * Runs a `Graph` with ONNX Runtime on the CPU. Arrays are fed without a copy and results can be written into
 * arrays that the caller owns, so that weights, gradients and moments live in JavaScript and are shared by all
 * graphs. A run computes on other threads; until it ends, its arrays are not to be touched.
 */
import { assert, EngineError } from "../errors.ts";
import { type Feed, RuntimeSession, type Weight } from "../shared/onnx-runtime/session.ts";
import type { Graph, Tensor } from "./graph.ts";
import { encodeOnnx } from "./onnx.ts";

export type { Feed, Values, Weight } from "../shared/onnx-runtime/session.ts";

export interface SessionOptions {
  /** Threads inside one operator. */
  readonly threads: number;
  /** The values of the graph's weights, by name. */
  readonly weights?: ReadonlyMap<string, Weight>;
}

export class Session {
  readonly #session: RuntimeSession;
  private constructor(session: RuntimeSession) {
    this.#session = session;
  }

  /** Throws `EngineError` when ONNX Runtime refuses the graph. */
  static async create(graph: Graph, outputs: readonly Tensor[], options: SessionOptions): Promise<Session> {
    const { threads, weights } = options;
    const initializers = new Map(graph.weights.map(({ name }) => [name, weight(name, weights)]));
    try {
      return new Session(RuntimeSession.open(encodeOnnx(graph, outputs), { threads, initializers }));
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
    into?: ReadonlyMap<string, Feed | Weight>,
  ): Promise<ReadonlyMap<string, Feed>> {
    try {
      return await this.#session.run(feeds, wanted, into);
    } catch (cause) {
      throw new EngineError(`ONNX Runtime failed: ${(cause as Error).message}`, { cause, kind: "failed" });
    }
  }

  /** Waits for the runs under way. */
  async close(): Promise<void> {
    await this.#session.close();
  }
}

function weight(name: string, weights: SessionOptions["weights"]): Weight {
  const feed = weights?.get(name);
  assert(feed, `the weight ${name} has no values`);
  return feed;
}
