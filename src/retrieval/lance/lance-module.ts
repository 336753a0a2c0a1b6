/**
 * LanceDB is no dependency of Forager: it brings some 200 MB, and few need it. It is loaded when a table is opened, and
 * described here by the part that is used. It is loaded by `require`, since tables given to it must be made by the very
 * copy of apache-arrow that it requires itself.
 */
import { createRequire } from "node:module";
import { RetrieverError } from "../../errors.ts";

export const LANCE_INSTALL = "npm install @lancedb/lancedb@0.31.0 apache-arrow@18.1.0";

export interface ArrowColumn {
  get(row: number): unknown;
}

export interface ArrowTable {
  readonly numRows: number;
  getChild(name: string): ArrowColumn | null;
}

/** An Arrow type, field, schema or piece of data; only passed on. */
export interface ArrowPart {
  readonly arrowPart?: never;
}

export interface ArrowModule {
  readonly Int32: new () => ArrowPart;
  readonly Float32: new () => ArrowPart;
  readonly Utf8: new () => ArrowPart;
  readonly FixedSizeList: new (length: number, child: ArrowPart) => ArrowPart;
  readonly Struct: new (fields: readonly ArrowPart[]) => ArrowPart;
  readonly Field: new (name: string, type: ArrowPart, nullable: boolean) => ArrowPart;
  readonly Schema: new (fields: readonly ArrowPart[]) => ArrowPart;
  readonly RecordBatch: new (schema: ArrowPart, data: ArrowPart) => ArrowPart;
  readonly Table: new (schema: ArrowPart, batches: readonly ArrowPart[]) => ArrowTable;
  makeData(parts: object): ArrowPart;
}

export interface LanceQuery {
  fullTextSearch(query: object): LanceQuery;
  nearestTo(vector: Float32Array): LanceVectorQuery;
  where(predicate: string): LanceQuery;
  select(columns: readonly string[]): LanceQuery;
  limit(rows: number): LanceQuery;
  toArrow(options?: { readonly timeoutMs?: number }): Promise<ArrowTable>;
}

export interface LanceVectorQuery extends LanceQuery {
  distanceType(type: "dot"): LanceVectorQuery;
  nprobes(partitions: number): LanceVectorQuery;
  refineFactor(factor: number): LanceVectorQuery;
  bypassVectorIndex(): LanceVectorQuery;
}

export interface LanceTable {
  countRows(): Promise<number>;
  add(rows: ArrowTable, options?: { readonly mode: "append" | "overwrite" }): Promise<unknown>;
  createIndex(column: string, options: { readonly config: object; readonly name: string }): Promise<void>;
  indexStats(name: string): Promise<{ readonly numUnindexedRows: number } | undefined>;
  query(): LanceQuery;
  version(): Promise<number>;
  close(): void;
}

export interface LanceConnection {
  openTable(name: string): Promise<LanceTable>;
  createTable(name: string, rows: ArrowTable): Promise<LanceTable>;
  createEmptyTable(name: string, schema: ArrowPart): Promise<LanceTable>;
  close(): void;
}

export interface LanceModule {
  connect(
    uri: string,
    options: { readonly storageOptions?: Readonly<Record<string, string>> },
    session?: object,
  ): Promise<LanceConnection>;
  readonly Session: new (indexCacheBytes: bigint, metadataCacheBytes: bigint) => object;
  readonly MatchQuery: new (query: string, column: string) => object;
  readonly Index: { fts(options: object): object; ivfPq(options: object): object };
}

export interface Lance {
  readonly lance: LanceModule;
  readonly arrow: ArrowModule;
}

/**
 * LanceDB and its Arrow. `packageName` is for tests. Throws `RetrieverError` with the command that installs it when it
 * is missing, or with the reason when it does not load.
 */
export function loadLance(packageName = "@lancedb/lancedb"): Lance {
  // Read when the module loads: with fewer threads, building a text index beside vectors hangs for ever on two cores.
  process.env.LANCE_CPU_THREADS ??= "4";
  // Its warnings repeat, at length and before its error, what the error says.
  process.env.LANCEDB_LOG ??= "error";
  const require = createRequire(import.meta.url);
  try {
    const path = require.resolve(packageName);
    const lance = require(path) as LanceModule;
    return { lance, arrow: createRequire(path)("apache-arrow") as ArrowModule };
  } catch (cause) {
    const isMissing = (cause as NodeJS.ErrnoException).code === "MODULE_NOT_FOUND";
    const reason = isMissing ? "is not installed" : `does not load (${(cause as Error).message})`;
    throw new RetrieverError(
      `LanceDB ${reason}; it is optional and not installed with Forager. Run: ${LANCE_INSTALL}`,
      { cause },
    );
  }
}
