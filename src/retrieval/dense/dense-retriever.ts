/**
 * Dense retrieval: the query's vector against those of all passages, by inner product, exactly or through the graph
 * that was built beside them. Encoder and vectors must belong together; a mismatch is refused, since it gives no error
 * otherwise, only nonsense.
 */
import { join } from "node:path";
import { RetrieverError } from "../../errors.ts";
import { canonicalJson, sha256 } from "../../shared/hash.ts";
import type { PassageStore } from "../passage-store.ts";
import type { Retriever, RetrieverIdentity, ScoredPassage } from "../retriever.ts";
import { ApproximateIndex } from "./approximate.ts";
import { checkEncoder, DENSE_VERSION, type DenseManifest, readDenseManifest } from "./dense-manifest.ts";
import type { Encoder } from "./encoder.ts";
import { ExactSearch, type Neighbours } from "./exact.ts";
import { checkPart, readSegments } from "./vector-file.ts";

export interface OpenDenseOptions {
  readonly threads: number;
  /** Refuse vectors of another corpus than this one. */
  readonly corpusHash?: string;
  /** Search through the graph; it must have been built. */
  readonly approximate?: boolean;
  /** Candidates of a search through the graph, instead of those it was built for. */
  readonly expansionSearch?: number;
}

/** What was made to search, and how to let it go. */
interface Search {
  search(queries: Float32Array, k: number, signal?: AbortSignal): Promise<Neighbours[]>;
  close(): Promise<void>;
}

/**
 * Opens a folder of vectors over `passages`, which must be those it was built from. The encoder stays the caller's
 * to close. Throws `FileError` when the folder is missing or damaged, `RetrieverError` when encoder, corpus or
 * version do not belong to it or there is no graph where one is asked for.
 */
export async function openDense(
  folder: string,
  { passages, encoder }: { readonly passages: PassageStore; readonly encoder: Encoder },
  options: OpenDenseOptions,
): Promise<DenseRetriever> {
  const manifest = await readDenseManifest(folder);
  checkEncoder(folder, manifest.encoder, encoder.identity);
  checkCorpus(folder, manifest, { count: passages.count, hash: options.corpusHash });
  const search = options.approximate
    ? await openGraph(folder, manifest, options)
    : await openExact(folder, manifest, options.threads);
  return new DenseRetriever({ passages, encoder, manifest, search }, options);
}

export class DenseRetriever implements Retriever {
  readonly identity: RetrieverIdentity;
  readonly manifest: DenseManifest;
  readonly #passages: PassageStore;
  readonly #encoder: Encoder;
  readonly #search: Search;

  constructor(
    parts: {
      readonly passages: PassageStore;
      readonly encoder: Encoder;
      readonly manifest: DenseManifest;
      readonly search: Search;
    },
    options: Pick<OpenDenseOptions, "approximate" | "expansionSearch">,
  ) {
    this.manifest = parts.manifest;
    this.identity = identityOf(parts.manifest, options);
    this.#passages = parts.passages;
    this.#encoder = parts.encoder;
    this.#search = parts.search;
  }

  async retrieve(queries: readonly string[], k: number, signal?: AbortSignal): Promise<ScoredPassage[][]> {
    if (!Number.isInteger(k) || k < 1)
      throw new RetrieverError(`k must be an integer of at least 1, got ${k}`);
    signal?.throwIfAborted();
    if (queries.length === 0) return [];
    // Rollouts of one question often ask the same: a query is encoded and searched for once.
    const unique = [...new Set(queries)].filter((query) => query.trim() !== "");
    if (unique.length === 0) return queries.map(() => []);
    const vectors = await this.#encoder.encodeQueries(unique, { signal });
    const answers = await this.#search.search(vectors, k, signal);
    signal?.throwIfAborted();
    const byQuery = new Map(unique.map((query, i) => [query, answers[i] as Neighbours]));
    // A query of nothing is near to nothing.
    return queries.map((query) => {
      const found = byQuery.get(query);
      return found === undefined ? [] : this.#passagesOf(found);
    });
  }

  #passagesOf({ positions, scores }: Neighbours): ScoredPassage[] {
    return positions.map((position, i) => ({
      passage: this.#passages.get(position),
      score: scores[i] as number,
    }));
  }

  /** Gives the memory of the vectors free; the encoder stays open. */
  close(): Promise<void> {
    return this.#search.close();
  }
}

/** Throws `RetrieverError` when the vectors are of another corpus; an unknown hash is not compared. */
export function checkCorpus(
  folder: string,
  manifest: DenseManifest,
  given: { readonly count: number; readonly hash: string | undefined },
): void {
  const isOther = given.hash !== undefined && given.hash !== manifest.corpusHash;
  if (!isOther && given.count === manifest.count) return;
  throw new RetrieverError(
    `the vectors in ${folder} belong to another corpus: expected ${describe(manifest.count, manifest.corpusHash)}, ` +
      `got ${describe(given.count, given.hash)}; build them again from the corpus in use`,
  );
}

function describe(count: number, hash: string | undefined): string {
  return hash === undefined ? `${count} passages` : `${count} passages (${hash.slice(0, 12)}…)`;
}

function openExact(folder: string, manifest: DenseManifest, threads: number): Promise<Search> {
  const { vectors: part, dtype, count, encoder } = manifest;
  const { dimensions } = encoder;
  return ExactSearch.open(readSegments({ folder, part, dtype, dimensions, count }), dimensions, threads);
}

/** Queries between two looks at the signal. */
const QUERIES_PER_TURN = 256;

async function openGraph(
  folder: string,
  manifest: DenseManifest,
  options: OpenDenseOptions,
): Promise<Search> {
  const { approximate, count, encoder } = manifest;
  if (approximate === undefined)
    throw new RetrieverError(
      `${folder} has no graph for approximate search; add one with forager index --out INDEX --approximate, or search exactly`,
    );
  await checkPart(folder, approximate.graph);
  const { dimensions } = encoder;
  const settings = {
    ...approximate.options,
    expansionSearch: options.expansionSearch ?? approximate.options.expansionSearch,
    threads: options.threads,
  };
  const index = await ApproximateIndex.open(
    join(folder, approximate.graph.file),
    { dimensions, count },
    settings,
  );
  return {
    search: async (queries, k, signal) => {
      const results: Neighbours[] = [];
      const step = QUERIES_PER_TURN * dimensions;
      for (let at = 0; at < queries.length; at += step) {
        signal?.throwIfAborted();
        results.push(...index.search(queries.subarray(at, at + step), k));
      }
      return results;
    },
    close: async () => undefined,
  };
}

function identityOf(
  manifest: DenseManifest,
  options: Pick<OpenDenseOptions, "approximate" | "expansionSearch">,
): RetrieverIdentity {
  const { encoder, dtype, corpusHash, count, approximate } = manifest;
  const graph = options.approximate ? approximate : undefined;
  const expansionSearch = options.expansionSearch ?? graph?.options.expansionSearch ?? 0;
  const made = { version: DENSE_VERSION, encoder: encoder.hash, dtype, corpusHash, count };
  // Two builds of a graph on several threads differ, so its bytes are part of what it is.
  const searched = graph && { graph: graph.graph.sha256, expansionSearch };
  return {
    method: graph ? "dense-approximate" : "dense",
    corpusHash,
    indexHash: sha256(canonicalJson({ ...made, ...searched })),
    parameters: {
      encoder: encoder.name,
      dtype,
      ...(graph && { expansionSearch, recall: graph.recall.value }),
    },
  };
}
