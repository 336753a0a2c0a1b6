/**
 * Builds the graph of approximate search over the stored vectors and measures it: passages drawn from the corpus are
 * asked for their neighbours, and the answer is compared with exact search. Real queries are farther from the
 * passages than passages are from each other, so they may find a little less.
 */
import { join } from "node:path";
import { fileError } from "../../shared/files.ts";
import { random } from "../../shared/random.ts";
import type { Part } from "../part-files.ts";
import { ApproximateIndex, type ApproximateOptions } from "./approximate.ts";
import type { DenseManifest, DensePlan, Recall } from "./dense-manifest.ts";
import { ExactSegment, mergeNeighbours, type Neighbours } from "./exact.ts";
import { progressOf, type WorkOptions } from "./progress.ts";
import { hashPart, readSegments, type VectorFile } from "./vector-file.ts";

const RECALL_QUERIES = 256;
const RECALL_K = 10;
const GRAPH_FILE = "graph.usearch";

export interface StoredVectors {
  readonly folder: string;
  readonly plan: DensePlan;
  readonly vectors: Part;
}

/** Writes the graph into the folder. Throws `FileError`, `RetrieverError`, and the signal's reason. */
export async function buildGraph(
  stored: StoredVectors,
  options: ApproximateOptions,
  work: WorkOptions,
): Promise<NonNullable<DenseManifest["approximate"]>> {
  const { plan, folder, vectors } = stored;
  const { dimensions } = plan.encoder;
  const file: VectorFile = { folder, part: vectors, dtype: plan.dtype, dimensions, count: plan.count };
  const index = await ApproximateIndex.create(dimensions, options, work.threads);
  const report = progressOf("graph", { first: 0, total: plan.count }, work);
  for await (const segment of readSegments(file)) await index.add(segment, report, work.signal);
  try {
    index.save(join(folder, GRAPH_FILE));
  } catch (cause) {
    throw fileError(`cannot write ${join(folder, GRAPH_FILE)}`, cause);
  }
  const graph = await hashPart(folder, GRAPH_FILE);
  return { options, graph, recall: await measureRecall(index, file, work) };
}

async function measureRecall(index: ApproximateIndex, file: VectorFile, work: WorkOptions): Promise<Recall> {
  const { count, dimensions } = file;
  const k = Math.min(RECALL_K, count);
  const positions = sample(count, Math.min(RECALL_QUERIES, count));
  const queries = await rowsAt(file, positions);
  const exact = await exactNeighbours(file, queries, { ...work, k });
  const found = index.search(queries, k);
  const shares = found.map((answer, i) => {
    const wanted = new Set(exact[i]?.positions);
    return answer.positions.filter((position) => wanted.has(position)).length / k;
  });
  const value = shares.reduce((sum, share) => sum + share, 0) / (queries.length / dimensions);
  return { value, k, queries: positions.length };
}

/** Positions in rising order, the same for equal counts. */
function sample(count: number, size: number): number[] {
  const chance = random(1, "recall", count);
  const chosen = new Set<number>();
  while (chosen.size < size) chosen.add(chance.below(count));
  return [...chosen].sort((a, b) => a - b);
}

async function rowsAt(file: VectorFile, positions: readonly number[]): Promise<Float32Array> {
  const { dimensions } = file;
  const rows = new Float32Array(positions.length * dimensions);
  let first = 0;
  for await (const segment of readSegments(file)) {
    const end = first + segment.length / dimensions;
    for (const [i, position] of positions.entries())
      if (position >= first && position < end) {
        const at = (position - first) * dimensions;
        rows.set(segment.subarray(at, at + dimensions), i * dimensions);
      }
    first = end;
  }
  return rows;
}

/** Exact answers with one segment in memory at a time. */
async function exactNeighbours(
  file: VectorFile,
  queries: Float32Array,
  { k, threads, signal, ...clock }: WorkOptions & { readonly k: number },
): Promise<Neighbours[]> {
  const { dimensions, count } = file;
  const report = progressOf("recall", { first: 0, total: count }, clock);
  let best: Neighbours[] | undefined;
  let first = 0;
  for await (const vectors of readSegments(file)) {
    signal?.throwIfAborted();
    const segment = await ExactSegment.open(vectors, { first, dimensions, threads });
    const found = await segment.search(queries, k);
    await segment.close();
    best = best?.map((old, i) => mergeNeighbours(old, found[i] as Neighbours, k)) ?? found;
    first += vectors.length / dimensions;
    report(first);
  }
  return best ?? [];
}
