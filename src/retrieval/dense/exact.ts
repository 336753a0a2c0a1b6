/**
 * Exact search: one matrix product of queries and all vectors and the best k of each row, by ONNX Runtime. The
 * vectors are a constant of the graph, so the runtime packs them once into the layout its product kernel likes.
 * Large corpora are cut into segments (a graph holds 2 GB at most) whose answers are merged.
 */
import { EngineError, RetrieverError } from "../../errors.ts";
import type { Feed, RuntimeSession } from "../../shared/onnx-runtime/session.ts";

/** Hits of one query, best first, equal scores by position. */
export interface Neighbours {
  readonly positions: readonly number[];
  readonly scores: readonly number[];
}

/** Queries of one product: enough for full speed, few enough that an abort is noticed and memory stays small. */
const QUERIES_PER_RUN = 64;

export class ExactSearch {
  readonly #segments: readonly ExactSegment[];
  readonly #dimensions: number;

  private constructor(segments: readonly ExactSegment[], dimensions: number) {
    this.#segments = segments;
    this.#dimensions = dimensions;
  }

  /** `segments` give (rows × dimensions) vectors in order. Throws what they throw, and `RetrieverError`. */
  static async open(
    segments: AsyncIterable<Float32Array>,
    dimensions: number,
    threads: number,
  ): Promise<ExactSearch> {
    const opened: ExactSegment[] = [];
    try {
      let first = 0;
      for await (const vectors of segments) {
        opened.push(await ExactSegment.open(vectors, { first, dimensions, threads }));
        first += vectors.length / dimensions;
      }
    } catch (error) {
      for (const segment of opened) await segment.close();
      throw error;
    }
    return new ExactSearch(opened, dimensions);
  }

  /** The `k` best of each row of `queries` (n × dimensions) by inner product. Throws the signal's reason. */
  async search(queries: Float32Array, k: number, signal?: AbortSignal): Promise<Neighbours[]> {
    const results: Neighbours[] = [];
    const step = QUERIES_PER_RUN * this.#dimensions;
    for (let at = 0; at < queries.length; at += step) {
      signal?.throwIfAborted();
      const block = queries.subarray(at, at + step);
      let best: Neighbours[] | undefined;
      for (const segment of this.#segments) {
        const found = await segment.search(block, k);
        best =
          best === undefined ? found : best.map((old, i) => mergeNeighbours(old, found[i] as Neighbours, k));
      }
      results.push(...(best ?? []));
    }
    return results;
  }

  async close(): Promise<void> {
    for (const segment of this.#segments) await segment.close();
  }
}

/** The best `k` of two answers; the first holds the lower positions and so wins ties. */
export function mergeNeighbours(a: Neighbours, b: Neighbours, k: number): Neighbours {
  const positions: number[] = [];
  const scores: number[] = [];
  let [i, j] = [0, 0];
  while (positions.length < k && (i < a.scores.length || j < b.scores.length)) {
    const isFirst = (a.scores[i] ?? Number.NEGATIVE_INFINITY) >= (b.scores[j] ?? Number.NEGATIVE_INFINITY);
    const [from, at] = (isFirst && i < a.scores.length) || j >= b.scores.length ? [a, i++] : [b, j++];
    positions.push(from.positions[at] as number);
    scores.push(from.scores[at] as number);
  }
  return { positions, scores };
}

/** Some consecutive vectors as a graph of their own. */
export class ExactSegment {
  readonly #session: RuntimeSession;
  readonly #first: number;
  readonly #count: number;
  readonly #dimensions: number;

  private constructor(session: RuntimeSession, size: SegmentSize) {
    this.#session = session;
    this.#first = size.first;
    this.#count = size.count;
    this.#dimensions = size.dimensions;
  }

  static async open(
    vectors: Float32Array,
    options: { readonly first: number; readonly dimensions: number; readonly threads: number },
  ): Promise<ExactSegment> {
    const { first, dimensions, threads } = options;
    const { RuntimeSession } = await import("../../shared/onnx-runtime/session.ts");
    const count = vectors.length / dimensions;
    try {
      const session = RuntimeSession.open(await productGraph(vectors, count, dimensions), { threads });
      return new ExactSegment(session, { first, count, dimensions });
    } catch (cause) {
      if (cause instanceof EngineError) throw cause;
      throw new RetrieverError(`ONNX Runtime refused ${count} vectors: ${(cause as Error).message}`, {
        cause,
      });
    }
  }

  /** The `k` best of each row; positions count from the start of the corpus. */
  async search(queries: Float32Array, k: number): Promise<Neighbours[]> {
    const n = queries.length / this.#dimensions;
    const width = Math.min(k, this.#count);
    const feeds = new Map<string, Feed>([
      ["queries", { data: queries, shape: [n, this.#dimensions] }],
      ["k", { data: BigInt64Array.of(BigInt(width)), shape: [1] }],
    ]);
    let results: ReadonlyMap<string, Feed>;
    try {
      results = await this.#session.run(feeds, ["scores", "positions"]);
    } catch (cause) {
      throw new RetrieverError(`ONNX Runtime failed: ${(cause as Error).message}`, { cause });
    }
    const scores = results.get("scores")?.data as Float32Array;
    const positions = results.get("positions")?.data as BigInt64Array;
    return Array.from({ length: n }, (_, row) => ({
      positions: Array.from(
        positions.subarray(row * width, (row + 1) * width),
        (at) => Number(at) + this.#first,
      ),
      scores: Array.from(scores.subarray(row * width, (row + 1) * width)),
    }));
  }

  async close(): Promise<void> {
    await this.#session.close();
  }
}

interface SegmentSize {
  readonly first: number;
  readonly count: number;
  readonly dimensions: number;
}

const FLOAT = 1;
const INT64 = 7;

/** `scores, positions = TopK(queries · vectorsᵀ, k)`; equal scores come lower position first, as ONNX says. */
async function productGraph(vectors: Float32Array, count: number, dimensions: number): Promise<Uint8Array> {
  const { onnx } = (await import("onnx-proto")).default;
  const value = (name: string, elemType: number, dims: readonly (number | string)[]): object => ({
    name,
    type: {
      tensorType: {
        elemType,
        shape: { dim: dims.map((d) => (typeof d === "number" ? { dimValue: d } : { dimParam: d })) },
      },
    },
  });
  const integer = (name: string, i: number): object => ({ name, type: 2, i });
  const model = onnx.ModelProto.fromObject({
    irVersion: 9,
    producerName: "forager",
    opsetImport: [{ domain: "", version: 18 }],
    graph: {
      name: "exact-search",
      node: [
        {
          opType: "Gemm",
          input: ["queries", "vectors"],
          output: ["products"],
          attribute: [integer("transB", 1)],
        },
        {
          opType: "TopK",
          input: ["products", "k"],
          output: ["scores", "positions"],
          attribute: [integer("axis", -1), integer("largest", 1), integer("sorted", 1)],
        },
      ],
      initializer: [
        {
          name: "vectors",
          dataType: FLOAT,
          dims: [count, dimensions],
          rawData: new Uint8Array(vectors.buffer, vectors.byteOffset, vectors.byteLength),
        },
      ],
      input: [value("queries", FLOAT, ["n", dimensions]), value("k", INT64, [1])],
      output: [value("scores", FLOAT, ["n", "width"]), value("positions", INT64, ["n", "width"])],
    },
  });
  return onnx.ModelProto.encode(model).finish();
}
