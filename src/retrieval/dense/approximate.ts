/**
 * Approximate nearest neighbours by a graph (HNSW, Malkov and Yashunin 2016) of the library usearch. It keeps its own
 * copy of the vectors in 16 bits. The graph is made once, over stored vectors, and read from disk as it is.
 * How much it misses is measured where it is built, never assumed.
 */
import { setImmediate } from "node:timers/promises";
import type { BatchMatches, Index, Matches } from "usearch";
import { z } from "zod";
import { FileError, RetrieverError } from "../../errors.ts";
import type { Neighbours } from "./exact.ts";

export const approximateOptionsSchema = z.strictObject({
  connectivity: z.int().min(2).max(256).default(16).describe("Neighbours of each vector in the graph."),
  expansionAdd: z
    .int()
    .min(8)
    .max(4096)
    .default(128)
    .describe("Candidates looked at when a vector is added."),
  expansionSearch: z
    .int()
    .min(8)
    .max(4096)
    .default(256)
    .describe("Candidates looked at in a search: more finds more, slower."),
  storage: z
    .enum(["bf16", "f16", "f32"])
    .default("bf16")
    .describe("Numbers in which the graph keeps vectors."),
});
export type ApproximateOptions = z.output<typeof approximateOptionsSchema>;

export class ApproximateIndex {
  readonly #index: Index;
  readonly #dimensions: number;
  readonly #threads: number;
  #count: number;

  private constructor(index: Index, dimensions: number, threads: number, count: number) {
    this.#index = index;
    this.#dimensions = dimensions;
    this.#threads = threads;
    this.#count = count;
  }

  static async create(
    dimensions: number,
    options: ApproximateOptions,
    threads: number,
  ): Promise<ApproximateIndex> {
    return new ApproximateIndex(await makeIndex(dimensions, options), dimensions, threads, 0);
  }

  /** Reads a saved graph of `count` vectors. Throws `FileError` when it is none. */
  static async open(
    path: string,
    size: { readonly dimensions: number; readonly count: number },
    options: ApproximateOptions & { readonly threads: number },
  ): Promise<ApproximateIndex> {
    const index = await makeIndex(size.dimensions, options);
    try {
      index.view(path);
    } catch (cause) {
      throw new FileError(
        `${path} is no graph that usearch can read (${(cause as Error).message}); build it again`,
        {
          cause,
        },
      );
    }
    if (Number(index.size()) !== size.count)
      throw new FileError(`${path} holds ${index.size()} vectors, expected ${size.count}; build it again`);
    return new ApproximateIndex(index, size.dimensions, options.threads, size.count);
  }

  /** Adds rows (n × dimensions) behind those that are there; reports how many there are. */
  async add(rows: Float32Array, report: (count: number) => void, signal?: AbortSignal): Promise<void> {
    const step = ROWS_PER_TURN * this.#dimensions;
    for (let at = 0; at < rows.length; at += step) {
      signal?.throwIfAborted();
      const piece = rows.subarray(at, at + step);
      const n = piece.length / this.#dimensions;
      const keys = BigUint64Array.from({ length: n }, (_, i) => BigInt(this.#count + i));
      this.#index.add(keys, piece, this.#threads);
      this.#count += n;
      report(this.#count);
      await setImmediate();
    }
  }

  /** The `k` nearest of each row of `queries` (n × dimensions), best first, equal scores by position. */
  search(queries: Float32Array, k: number): Neighbours[] {
    const n = queries.length / this.#dimensions;
    if (n === 0) return [];
    const width = Math.min(k, this.#count);
    // A thread costs about as much to start as ten queries to answer.
    const threads = Math.min(this.#threads, Math.ceil(n / 16));
    const found = this.#index.search(queries, width, threads);
    return Array.from({ length: n }, (_, row) => {
      const hits = "counts" in found ? (found as BatchMatches).get(row) : found;
      return sorted(hits);
    });
  }

  save(path: string): void {
    this.#index.save(path);
  }
}

/** Distances are 1 - inner product. */
function sorted({ keys, distances }: Matches): Neighbours {
  const hits = Array.from(keys, (key, i) => ({ position: Number(key), score: 1 - (distances[i] as number) }));
  hits.sort((a, b) => b.score - a.score || a.position - b.position);
  return { positions: hits.map(({ position }) => position), scores: hits.map(({ score }) => score) };
}

/** Vectors that are added before other work gets a turn. */
const ROWS_PER_TURN = 512;

async function makeIndex(dimensions: number, options: ApproximateOptions): Promise<Index> {
  let usearch: typeof import("usearch");
  try {
    usearch = await import("usearch");
  } catch (cause) {
    throw new RetrieverError(
      `the approximate index needs the package usearch, which does not load here (${(cause as Error).message}); search exactly instead`,
      { cause },
    );
  }
  const { Index, MetricKind, ScalarKind } = usearch.default ?? usearch;
  return new Index({
    dimensions,
    metric: MetricKind.IP,
    quantization: { bf16: ScalarKind.BF16, f16: ScalarKind.F16, f32: ScalarKind.F32 }[options.storage],
    connectivity: options.connectivity,
    expansion_add: options.expansionAdd,
    expansion_search: options.expansionSearch,
    multi: false,
  });
}
