/**
 * A LanceDB table as a retriever: by words (LanceDB's BM25, k1 1.2, b 0.75, over our terms), by vectors, or by both. Only
 * what a query touches is read, so that the table may be larger than memory or lie in an object store.
 */
import { ConfigError, RetrieverError } from "../../errors.ts";
import type { Encoder } from "../dense/encoder.ts";
import { type HybridOptions, hybridRetriever } from "../hybrid.ts";
import type { Retriever } from "../retriever.ts";
import { type FinishedManifest, readManifest } from "./lance-manifest.ts";
import { type LanceSource, type LanceStorage, lanceSourceSchema } from "./lance-options.ts";
import { answerWithin, type LancePlace, OPENING_MS, openPlace } from "./lance-place.ts";
import { type OpenTable, tableSearch, vectorRanking, wordRanking } from "./lance-search.ts";

export interface LanceRetrieverOptions {
  readonly table: string;
  /** Default `bm25`. */
  readonly mode?: LanceSource["mode"];
  /** Of the table's vectors, for the modes `dense` and `hybrid` only; stays the caller's to close. */
  readonly encoder?: Encoder;
  readonly storage?: LanceStorage;
  /** Gives up opening. */
  readonly signal?: AbortSignal | undefined;
  /** As in `lanceSourceSchema`; so are their defaults. */
  readonly hybrid?: HybridOptions;
  readonly concurrency?: number;
  readonly timeoutMs?: number;
  readonly cacheMegabytes?: number;
  readonly probes?: number;
  readonly refine?: number;
}

export interface LanceRetriever extends Retriever {
  readonly manifest: FinishedManifest;
  close(): Promise<void>;
}

/**
 * Opens a finished table. Throws `ConfigError` or `FileError` for options or a place that cannot be used,
 * `RetrieverError` when LanceDB is missing, the place does not answer within a minute (`timeoutMs` where that is more), the
 * table is missing, unfinished or changed, or the encoder is not that of its vectors.
 */
export async function lanceRetriever(uri: string, options: LanceRetrieverOptions): Promise<LanceRetriever> {
  const { encoder, storage, signal } = options;
  const source = sourceOf(uri, options);
  const opening = (): Promise<OpenedTable> => openTable(uri, source, storage);
  const { place, table, manifest } = await answerWithin(opening, `cannot open ${source.table} in ${uri}`, {
    limitMs: Math.max(OPENING_MS, source.timeoutMs),
    signal,
    discard: closeTable,
  });
  try {
    const parts = { place, table, manifest, source };
    const words = () => tableSearch(parts, wordRanking(parts));
    const vectors = () => tableSearch(parts, vectorRanking(parts, checkedEncoder(place, manifest, encoder)));
    const close = async (): Promise<void> => closeTable({ place, table });
    return { ...retrieverOf(source, words, vectors), manifest, close };
  } catch (error) {
    place.connection.close();
    throw error;
  }
}

function retrieverOf(source: LanceSource, words: () => Retriever, vectors: () => Retriever): Retriever {
  if (source.mode === "bm25") return words();
  const dense = { name: "dense", retriever: vectors() };
  if (source.mode === "dense") return dense.retriever;
  return hybridRetriever([{ name: "bm25", retriever: words() }, dense], source.hybrid);
}

function sourceOf(uri: string, { encoder, storage, signal, ...given }: LanceRetrieverOptions): LanceSource {
  const parsed = lanceSourceSchema.safeParse({ type: "lance", uri, ...given });
  if (parsed.success && parsed.data.mode === "bm25" && encoder !== undefined)
    throw new ConfigError(
      "options of a LanceDB table: mode bm25 ranks by words, expected no encoder, got one; choose mode dense or hybrid, or leave the encoder out",
      { path: "encoder" },
    );
  if (parsed.success) return parsed.data;
  const { path, message } = parsed.error.issues[0] ?? { path: [], message: "" };
  throw new ConfigError(`options of a LanceDB table: ${path.join(".")}: ${message}`, {
    path: path.join("."),
  });
}

type OpenedTable = Pick<OpenTable, "place" | "table" | "manifest">;

function closeTable({ place, table }: Pick<OpenTable, "place" | "table">): void {
  table.close();
  place.connection.close();
}

async function openTable(
  uri: string,
  { table, cacheMegabytes }: LanceSource,
  storage: LanceStorage | undefined,
): Promise<OpenedTable> {
  const place = await openPlace(uri, {
    table,
    storage,
    cacheBytes: cacheMegabytes * 2 ** 20,
    mustExist: true,
  });
  try {
    return { place, ...(await finishedTable(place, table)) };
  } catch (error) {
    place.connection.close();
    throw error;
  }
}

async function finishedTable(place: LancePlace, name: string): Promise<Omit<OpenedTable, "place">> {
  const manifest = await readManifest(place, name);
  const table = await place.find(name);
  if (manifest === undefined || table === undefined)
    throw new RetrieverError(
      `there is no table ${place.name} that Forager made; check the name and the place, or build it first`,
    );
  const count = await place.attempt(`cannot read the table ${place.name}`, () => table.countRows());
  if (manifest.state === "building")
    throw new RetrieverError(
      `the table ${place.name} is not finished (${count} passages so far); start its build again, which goes on from there`,
    );
  if (count === manifest.count) return { table, manifest };
  throw new RetrieverError(
    `the table ${place.name} was changed after it was built: expected ${manifest.count} passages, got ${count}; build it again`,
  );
}

function checkedEncoder(
  { name }: LancePlace,
  { settings }: FinishedManifest,
  encoder: Encoder | undefined,
): Encoder {
  const wanted = settings.encoder;
  if (wanted === null)
    throw new RetrieverError(
      `the table ${name} has no vectors; search it with mode bm25, or build it with an encoder`,
    );
  if (encoder === undefined)
    throw new RetrieverError(
      `the vectors of ${name} are those of the encoder ${wanted.name}; give it to search them`,
    );
  const { identity } = encoder;
  if (identity.hash === wanted.hash && identity.dimensions === wanted.dimensions) return encoder;
  throw new RetrieverError(
    `encoder and vectors of ${name} do not belong together: expected ${wanted.name} (${wanted.hash.slice(0, 12)}…), got ` +
      `${identity.name} (${identity.hash.slice(0, 12)}…); use that encoder, or build the table again`,
  );
}
