/**
 * A connection to where tables lie, and errors of LanceDB in our words. What is secret in the storage options is taken
 * out of every message.
 */
import { ConfigError, FileError, RetrieverError } from "../../errors.ts";
import { onAbort, untilAborted } from "../../shared/concurrency.ts";
import { exists } from "../../shared/files.ts";
import { lanceError } from "./lance-errors.ts";
import {
  type ArrowModule,
  type LanceConnection,
  type LanceModule,
  type LanceTable,
  loadLance,
} from "./lance-module.ts";
import { type LanceStorage, lanceTableNameSchema, lanceUriSchema } from "./lance-options.ts";

export interface LancePlace {
  readonly lance: LanceModule;
  readonly arrow: ArrowModule;
  readonly connection: LanceConnection;
  /** The table for messages: `passages in s3://bucket/prefix`. */
  readonly name: string;
  /** Waits for work of LanceDB; its errors become `RetrieverError`s that begin with `what`. */
  attempt<T>(what: string, work: () => Promise<T>): Promise<T>;
  /** The table of a name, or undefined when there is none. */
  find(table: string): Promise<LanceTable | undefined>;
}

export interface PlaceOptions {
  readonly table: string;
  readonly storage?: LanceStorage | undefined;
  /** Bytes of memory for what was read of the indexes. */
  readonly cacheBytes?: number | undefined;
  /** Whether the folder must be there already. */
  readonly mustExist?: boolean;
}

const DEFAULT_CACHE_BYTES = 2 ** 30;
/** Within which a place must have opened a table. */
export const OPENING_MS = 60_000;

/**
 * Connects to `uri`. Throws `ConfigError` for names and storage that cannot be used, `FileError` when a folder is not
 * there, `RetrieverError` when LanceDB is missing or cannot connect.
 */
export async function openPlace(uri: string, options: PlaceOptions): Promise<LancePlace> {
  const { table, storage = {}, cacheBytes = DEFAULT_CACHE_BYTES } = options;
  checkNames(uri, table);
  const isLocal = isFolder(uri);
  const storageOptions = isLocal ? {} : storageOptionsOf(storage);
  if (isLocal && options.mustExist && !(await exists(uri)))
    throw new FileError(`cannot open the table ${table} in ${uri}: no such folder; check the path`);
  const { lance, arrow } = loadLance();
  const name = `${table} in ${uri}`;
  const attempt = attempts(storage);
  const session = new lance.Session(BigInt(cacheBytes), BigInt(Math.ceil(cacheBytes / 4)));
  const connection = await attempt(`cannot open ${uri}`, () =>
    lance.connect(uri, { storageOptions }, session),
  );
  const find = async (wanted: string): Promise<LanceTable | undefined> => {
    try {
      return await connection.openTable(wanted);
    } catch (error) {
      if (/table.* was not found|TableNotFound/i.test(String(error))) return undefined;
      return attempt(`cannot open the table ${wanted} in ${uri}`, () => Promise.reject(error));
    }
  };
  return { lance, arrow, connection, name, attempt, find };
}

interface Patience<T> {
  readonly limitMs: number;
  readonly signal?: AbortSignal | undefined;
  readonly discard?: (late: T) => void;
}

/**
 * Waits for `work` at most `limitMs`. LanceDB gives up after many minutes where a server takes connections and never answers.
 * Throws `RetrieverError` that begins with `what`, or the signal's reason; the work goes on by itself, its signal says so,
 * and `discard` gets what it comes to.
 */
export async function answerWithin<T>(
  work: (givenUp: AbortSignal) => Promise<T>,
  what: string,
  { limitMs, signal, discard }: Patience<T>,
): Promise<T> {
  signal?.throwIfAborted();
  const wait = new AbortController();
  const late = `${what}: no answer within ${limitMs / 1000} s; check that the place can be reached, and AWS_ENDPOINT or storage.endpoint`;
  const timer = setTimeout(() => wait.abort(new RetrieverError(late)), limitMs);
  const forget = onAbort(signal, () => wait.abort(signal?.reason));
  const working = work(wait.signal);
  try {
    return await untilAborted(working, wait.signal);
  } catch (error) {
    working.then(discard, () => undefined);
    throw error;
  } finally {
    clearTimeout(timer);
    forget();
  }
}

/** Whether `uri` is a folder, or a place in an object store. */
export function isFolder(uri: string): boolean {
  return !uri.includes("://");
}

/** Throws `ConfigError` for a place or a name that cannot be used. */
export function checkNames(uri: string, table: string): void {
  for (const [path, schema, value] of [
    ["uri", lanceUriSchema, uri],
    ["table", lanceTableNameSchema, table],
  ] as const) {
    const parsed = schema.safeParse(value);
    if (!parsed.success)
      throw new ConfigError(`${path}: ${parsed.error.issues[0]?.message}, got ${JSON.stringify(value)}`, {
        path,
      });
  }
}

/** The storage in the words of LanceDB. Throws `ConfigError`. */
export function storageOptionsOf(storage: LanceStorage): Record<string, string> {
  const { endpoint, region, allowHttp, accessKey, secretKey, sessionToken } = storage;
  if (endpoint?.startsWith("http://") && !allowHttp)
    throw new ConfigError(
      "the endpoint is http://, over which keys and passages are readable; set allowHttp",
      {
        path: "storage.endpoint",
      },
    );
  if ((accessKey === undefined) !== (secretKey === undefined))
    throw new ConfigError("expected an access key and a secret key, or neither; got one", {
      path: "storage",
    });
  return {
    ...(endpoint && { aws_endpoint: endpoint }),
    ...(region && { aws_region: region }),
    ...(allowHttp && { allow_http: "true" }),
    ...(accessKey && { aws_access_key_id: accessKey }),
    ...(secretKey && { aws_secret_access_key: secretKey }),
    ...(sessionToken && { aws_session_token: sessionToken }),
  };
}

function attempts({ accessKey, secretKey, sessionToken }: LanceStorage): LancePlace["attempt"] {
  const secrets = [accessKey, secretKey, sessionToken].filter((secret) => secret !== undefined);
  return async (what, work) => {
    try {
      return await work();
    } catch (error) {
      throw lanceError(what, error, secrets);
    }
  };
}
