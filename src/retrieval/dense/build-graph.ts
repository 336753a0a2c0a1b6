/**
 * Builds the graph of approximate search over the stored vectors and measures it against exact search. The queries are
 * the openings of passages drawn from the corpus, encoded as queries: whole passages would be too easy, since each lies
 * on its own vector (on 773 real questions the graph found 0.956 of the best ten, with passages as queries 0.982).
 */
import { join } from "node:path";
import { fileError } from "../../shared/files.ts";
import { random } from "../../shared/random.ts";
import type { Part } from "../part-files.ts";
import type { PassageStore } from "../passage-store.ts";
import { ApproximateIndex, type ApproximateOptions } from "./approximate.ts";
import type { DenseManifest, DensePlan, Recall } from "./dense-manifest.ts";
import { type Encoder, type PassageText, passageText } from "./encoder.ts";
import { ExactSegment, mergeNeighbours, type Neighbours } from "./exact.ts";
import { progressOf, type WorkOptions } from "./progress.ts";
import { hashPart, readSegments, type VectorFile } from "./vector-file.ts";

const RECALL_QUERIES = 256;
const RECALL_K = 10;
const GRAPH_FILE = "graph.usearch";

/** Words of an opening: about as many as a long query has. */
const OPENING_WORDS = 10;

export interface StoredVectors {
  readonly folder: string;
  readonly plan: DensePlan;
  readonly vectors: Part;
  readonly passages: PassageStore;
  readonly encoder: Encoder;
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
  const positions = sample(plan.count, Math.min(RECALL_QUERIES, plan.count));
  const openings = positions.map((position) => openingOf(stored.passages.get(position)));
  const queries = await stored.encoder.encodeQueries(openings, { signal: work.signal });
  return { options, graph, recall: await measureRecall(index, { file, queries }, work) };
}

function openingOf(passage: PassageText): string {
  return passageText(passage).split(/\s+/, OPENING_WORDS).join(" ");
}

async function measureRecall(
  index: ApproximateIndex,
  { file, queries }: { readonly file: VectorFile; readonly queries: Float32Array },
  work: WorkOptions,
): Promise<Recall> {
  const k = Math.min(RECALL_K, file.count);
  const exact = await exactNeighbours(file, queries, { ...work, k });
  const found = index.search(queries, k).map(({ positions }) => new Set(positions));
  const mean = (values: readonly number[]): number => values.reduce((sum, x) => sum + x, 0) / values.length;
  const value = exact.map(({ positions }, i) => positions.filter((p) => found[i]?.has(p)).length / k);
  const first = exact.map(({ positions }, i) => (found[i]?.has(positions[0] as number) ? 1 : 0));
  return { value: mean(value), first: mean(first), k, queries: exact.length };
}

/** Positions in rising order, the same for equal counts. */
function sample(count: number, size: number): number[] {
  const chance = random(1, "recall", count);
  const chosen = new Set<number>();
  while (chosen.size < size) chosen.add(chance.below(count));
  return [...chosen].sort((a, b) => a - b);
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
