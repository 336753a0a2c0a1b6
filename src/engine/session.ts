/**
 * Runs a `Graph` with ONNX Runtime on the CPU. Arrays are fed without a copy and results can be written into
 * arrays that the caller owns, so that weights, gradients and moments live in JavaScript and are shared by all
 * graphs.
 */
import { InferenceSession, type OnnxValue, Tensor as OrtTensor } from "onnxruntime-node";
import { assert, EngineError } from "../errors.ts";
import type { Graph, Tensor } from "./graph.ts";
import { encodeOnnx } from "./onnx.ts";

export type Values = Float32Array | BigInt64Array;

/** What is fed: an array with its shape, by input name. */
export interface Feed {
  readonly data: Values;
  readonly shape: readonly number[];
}

/** What is fixed when a session is made. */
export interface Weight {
  readonly data: Float32Array | Uint8Array;
  readonly shape: readonly number[];
}

export interface SessionOptions {
  /** Threads inside one operator. */
  readonly threads: number;
  /** The values of the graph's weights, by name. */
  readonly weights?: ReadonlyMap<string, Weight>;
}

export class Session {
  readonly #session: InferenceSession;
  private constructor(session: InferenceSession) {
    this.#session = session;
  }

  /** Throws `EngineError` when ONNX Runtime refuses the graph. */
  static async create(graph: Graph, outputs: readonly Tensor[], options: SessionOptions): Promise<Session> {
    try {
      const session = await InferenceSession.create(encodeOnnx(graph, outputs), {
        externalData: graph.weights.map(({ name }) => ({ path: name, data: bytesOf(name, options.weights) })),
        intraOpNumThreads: options.threads,
        interOpNumThreads: 1,
        executionMode: "sequential",
        graphOptimizationLevel: "all",
        logSeverityLevel: 3,
        // Idle threads that spin double the time of a step as soon as anything else runs on the machine.
        extra: { session: { intra_op: { allow_spinning: "0" } } },
      });
      return new Session(session);
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
    const inputs: Record<string, OnnxValue> = {};
    for (const [name, feed] of feeds) inputs[name] = ortTensor(feed);
    const fetches: Record<string, OnnxValue | null> = {};
    for (const name of wanted) fetches[name] = null;
    for (const [name, feed] of into) fetches[name] = ortTensor(feed);
    let results: InferenceSession.OnnxValueMapType;
    try {
      results = await this.#session.run(inputs, fetches as InferenceSession.NullableOnnxValueMapType);
    } catch (cause) {
      throw new EngineError(`ONNX Runtime failed: ${(cause as Error).message}`, { cause });
    }
    return new Map(
      wanted.map((name) => {
        const tensor = results[name] as OrtTensor;
        return [name, { data: tensor.data as Values, shape: tensor.dims }];
      }),
    );
  }

  async close(): Promise<void> {
    await this.#session.release();
  }
}

function bytesOf(name: string, weights: SessionOptions["weights"]): Uint8Array {
  const data = weights?.get(name)?.data;
  assert(data, `the weight ${name} has no values`);
  return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
}

function ortTensor({ data, shape }: Feed): OrtTensor {
  return data instanceof Float32Array
    ? new OrtTensor("float32", data, shape)
    : new OrtTensor("int64", data, shape);
}
