/**
 * The indexes of a finished table: text by the terms column, vectors by IVF-PQ once there are many, whose recall against
 * comparing all vectors is measured with vectors of the table.
 */
import { RetrieverError } from "../../errors.ts";
import type { FinishedManifest, LanceSettings } from "./lance-manifest.ts";
import type { LanceQuery, LanceTable, LanceVectorQuery } from "./lance-module.ts";
import { lanceSourceSchema } from "./lance-options.ts";
import type { LancePlace } from "./lance-place.ts";
import { LONGEST_TERM } from "./lance-terms.ts";

export interface IndexWork {
  readonly place: LancePlace;
  readonly table: LanceTable;
  readonly settings: LanceSettings;
  readonly count: number;
}

export async function indexText({ place, table }: IndexWork): Promise<void> {
  const config = place.lance.Index.fts({
    baseTokenizer: "whitespace",
    maxTokenLength: LONGEST_TERM,
    withPosition: false,
    lowercase: false,
    stem: false,
    removeStopWords: false,
    asciiFolding: false,
  });
  await makeIndex({ place, table }, { column: "terms", config });
  const index = indexOf("terms");
  const stats = await place.attempt(`cannot read the index of ${place.name}`, () => table.indexStats(index));
  if (stats?.numUnindexedRows !== 0)
    throw new RetrieverError(
      `LanceDB left ${stats?.numUnindexedRows ?? "all"} rows of ${place.name} out of the index ${index}; start the build again`,
    );
}

/** How a vector index is looked through. */
export interface Probing {
  readonly probes: number;
  readonly refine: number;
}

/** The rows nearest to `vector`; all vectors are compared when there is no index. */
export function nearest(
  table: LanceTable,
  vector: Float32Array,
  { probes, refine }: Probing,
): LanceVectorQuery {
  const query = table.query().nearestTo(vector).distanceType("dot");
  return query.nprobes(probes).refineFactor(refine);
}

export function hasVectorIndex({ settings, count }: Pick<IndexWork, "settings" | "count">): boolean {
  return settings.encoder !== null && count >= settings.build.approximateFrom;
}

/** The recall of the index; null when there are too few vectors for one. */
export async function indexVectors(
  work: IndexWork,
  signal: AbortSignal | undefined,
): Promise<FinishedManifest["recall"]> {
  if (!hasVectorIndex(work)) return null;
  const config = work.place.lance.Index.ivfPq({ distanceType: "dot" });
  await makeIndex(work, { column: "vector", config });
  return measureRecall(work, signal);
}

async function makeIndex(
  { place, table }: Pick<IndexWork, "place" | "table">,
  { column, config }: { readonly column: string; readonly config: object },
): Promise<void> {
  await place.attempt(`cannot make the index of ${place.name}`, () =>
    table.createIndex(column, { config, name: indexOf(column) }),
  );
}

function indexOf(column: string): string {
  return `${column}_idx`;
}

const RECALL_QUERIES = 32;
const NEIGHBOURS = 10;

/** How many of the 10 nearest neighbours of vectors spread over the table, themselves left out, are found. */
async function measureRecall(
  { place, table, count }: IndexWork,
  signal: AbortSignal | undefined,
): Promise<{ value: number; queries: number }> {
  const probing = lanceSourceSchema.parse({ type: "lance", uri: "." });
  const positionsOf = async (query: LanceQuery): Promise<number[]> => {
    const rows = await query
      .select(["position", "_distance"])
      .limit(NEIGHBOURS + 1)
      .toArrow();
    return Array.from({ length: rows.numRows }, (_, i) => Number(rows.getChild("position")?.get(i)));
  };
  let found = 0;
  for (let i = 0; i < RECALL_QUERIES; i++) {
    signal?.throwIfAborted();
    const position = Math.floor((i * count) / RECALL_QUERIES);
    found += await place.attempt(`cannot measure the index of ${place.name}`, async () => {
      const where = `position = ${position}`;
      const row = await table.query().where(where).select(["vector"]).limit(1).toArrow();
      const vector = Float32Array.from(row.getChild("vector")?.get(0) as Iterable<number>);
      const exact = await positionsOf(nearest(table, vector, probing).bypassVectorIndex());
      const approximate = new Set(await positionsOf(nearest(table, vector, probing)));
      const wanted = exact.filter((other) => other !== position).slice(0, NEIGHBOURS);
      return wanted.filter((other) => approximate.has(other)).length / wanted.length;
    });
  }
  return { value: found / RECALL_QUERIES, queries: RECALL_QUERIES };
}
