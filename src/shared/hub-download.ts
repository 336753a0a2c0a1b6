/**
 * One file from a hub to disk: a partial file beside the target that a later attempt (also of a later process)
 * continues, further attempts for what passes by itself, and checks of length and hash before the file gets its
 * name. Two processes that fetch the same file at once may cost each other an attempt, never a wrong file.
 */
import { createHash, type Hash } from "node:crypto";
import { createReadStream } from "node:fs";
import { type FileHandle, open, readdir, rename, rm, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { exists, fileError, makeFolder } from "./files.ts";
import {
  type Answer,
  askForFile,
  type Declared,
  dropBody,
  HubError,
  type HubFailure,
  shown,
} from "./hub-http.ts";

export interface DownloadOptions {
  /** Access token; sent to the hub itself only. */
  readonly token?: string | undefined;
  readonly fetch?: typeof fetch;
  readonly signal?: AbortSignal | undefined;
  /** Bytes of a file that are on disk, and its size where the hub tells it. */
  readonly onProgress?: (file: DownloadProgress) => void;
  /** Further attempts after a failure that may pass by itself; one that got further does not count. Default 4. */
  readonly retries?: number;
  /** Milliseconds before the first further attempt, doubled for each next. Default 1000. */
  readonly retryDelayMs?: number;
  /** Milliseconds without a byte after which a connection counts as broken. Default 60,000. */
  readonly stallMs?: number;
}

export interface DownloadProgress {
  /** The file as it is named on disk. */
  readonly file: string;
  readonly bytes: number;
  readonly total: number | undefined;
}

const transient: readonly HubFailure[] = ["rate-limited", "server", "network", "broken-off"];
/** Longer waits are the user's decision. */
const LONGEST_WAIT_SECONDS = 60;

/** What is on disk of a download that goes on. */
interface Partial {
  readonly target: string;
  readonly url: URL;
  path: string;
  bytes: number;
}

/**
 * Downloads `url` to the new file `target` and returns the commit it is of, where the hub tells. Throws `HubError`
 * (the partial file stays, unless it is wrong), `FileError`, or the signal's reason.
 */
export async function downloadFile(
  url: URL,
  target: string,
  options: DownloadOptions,
): Promise<{ readonly commit: string | undefined }> {
  const { retries = 4, retryDelayMs = 1000, signal } = options;
  const partial: Partial = { target, url, path: "", bytes: 0 };
  let failures = 0;
  for (;;) {
    const before = partial.bytes;
    try {
      return await attempt(partial, options);
    } catch (error) {
      signal?.throwIfAborted();
      if (!(error instanceof HubError) || !transient.includes(error.reason))
        throw fileError(`cannot write ${target}`, error);
      failures = partial.bytes > before ? 1 : failures + 1;
      const asked = error.retryAfter ?? 0;
      if (failures > retries || asked > LONGEST_WAIT_SECONDS) throw error;
      const wait = Math.max(asked * 1000, retryDelayMs * 2 ** (failures - 1));
      await sleep(wait, undefined, { ...(signal && { signal }) }).catch(() => undefined);
      signal?.throwIfAborted();
    }
  }
}

async function attempt(
  partial: Partial,
  options: DownloadOptions,
): Promise<{ readonly commit: string | undefined }> {
  const { token, fetch: ask = fetch, signal, stallMs = 60_000 } = options;
  await makeFolder(dirname(partial.target));
  const stall = new AbortController();
  const watch = setTimeout(() => stall.abort(), stallMs);
  const startAt = async (tag: string): Promise<number> => {
    partial.path = partialPath(partial.target, tag);
    return (await exists(partial.path)) ? (await stat(partial.path)).size : 0;
  };
  try {
    const either = AbortSignal.any([stall.signal, ...(signal ? [signal] : [])]);
    const answer = await askForFile({ url: partial.url, token, fetch: ask, signal: either, startAt });
    await receive(partial, answer, { ...options, onBytes: () => watch.refresh() });
    await check(partial, answer.declared);
    await rename(partial.path, partial.target);
    await removeOtherPartials(partial.target);
    return { commit: answer.declared.commit };
  } finally {
    clearTimeout(watch);
    stall.abort();
  }
}

/** Each version of a file has a partial file of its own. */
function partialPath(target: string, tag: string): string {
  const version = createHash("sha256").update(tag).digest("hex").slice(0, 12);
  return join(dirname(target), `.${basename(target)}.${version}.partial`);
}

async function removeOtherPartials(target: string): Promise<void> {
  const pattern = (file: string): boolean =>
    file.startsWith(`.${basename(target)}.`) && /\.[0-9a-f]{12}\.partial$/.test(file);
  for (const file of (await readdir(dirname(target))).filter(pattern))
    await rm(join(dirname(target), file), { force: true });
}

/** Writes what comes behind what is there. */
async function receive(
  partial: Partial,
  { response, declared }: Answer,
  { onProgress, onBytes, signal }: DownloadOptions & { readonly onBytes: () => void },
): Promise<void> {
  if (declared.tag === undefined) partial.path = partialPath(partial.target, "");
  const total = declared.size;
  if (response.status === 416) return await rest(partial, response, total);
  partial.bytes = response.status === 206 ? await continuedFrom(partial, response, total) : 0;
  if (response.status === 200) await checkDeclared(partial, response, total);
  const handle = await open(partial.path, partial.bytes > 0 ? "r+" : "w");
  try {
    for await (const piece of pieces(response, partial, signal)) {
      onBytes();
      await writeWhole(handle, piece, partial.bytes);
      partial.bytes += piece.length;
      if (total !== undefined && partial.bytes > total) break;
      onProgress?.({ file: partial.target, bytes: partial.bytes, total });
    }
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Writes all of `piece` at `position`; one write may take only a part of it. */
export async function writeWhole(
  file: Pick<FileHandle, "write">,
  piece: Uint8Array,
  position: number,
): Promise<void> {
  for (let written = 0; written < piece.length; )
    written += (await file.write(piece, written, piece.length - written, position + written)).bytesWritten;
}

/** A connection that ends too early is told from one that the user ends. */
async function* pieces(
  response: Response,
  partial: Partial,
  signal: AbortSignal | undefined,
): AsyncGenerator<Uint8Array> {
  try {
    // Node's streams are iterable, which the types of browsers do not say.
    const body = response.body as (ReadableStream<Uint8Array> & AsyncIterable<Uint8Array>) | null;
    if (body !== null) yield* body;
  } catch (cause) {
    signal?.throwIfAborted();
    throw brokenOff(partial, undefined, cause);
  }
}

function brokenOff({ url, bytes }: Partial, total: number | undefined, cause?: unknown): HubError {
  const of = total === undefined ? "" : ` of ${total}`;
  return new HubError(
    "broken-off",
    `${shown(url)} broke off after ${bytes}${of} bytes; what came is kept: run again to go on`,
    { cause },
  );
}

/** Nothing is left to send (416): right when the partial file is complete. */
async function rest(partial: Partial, response: Response, total: number | undefined): Promise<void> {
  await dropBody(response);
  partial.bytes = (await stat(partial.path)).size;
  if (partial.bytes === total) return;
  await rm(partial.path, { force: true });
  partial.bytes = 0;
  throw brokenOff(partial, total);
}

/** Where a 206 goes on; it must be where the partial file ends. */
async function continuedFrom(
  partial: Partial,
  response: Response,
  total: number | undefined,
): Promise<number> {
  const { size } = await stat(partial.path);
  const range = response.headers.get("content-range") ?? "";
  const [, start, whole] = /^bytes (\d+)-\d+\/(\d+|\*)$/.exec(range) ?? [];
  if (Number(start) === size && (total === undefined || whole === "*" || Number(whole) === total))
    return size;
  await dropBody(response);
  throw await wrongLength(partial, `asked for the bytes from ${size} of ${total ?? "?"}, it sent "${range}"`);
}

async function checkDeclared(partial: Partial, response: Response, total: number | undefined): Promise<void> {
  if (response.headers.has("content-encoding")) return;
  const length = response.headers.get("content-length");
  if (length === null || total === undefined || Number(length) === total) return;
  await dropBody(response);
  throw await wrongLength(partial, `the hub says that it has ${total} bytes, ${length} were announced`);
}

async function wrongLength(partial: Partial, what: string): Promise<HubError> {
  await rm(partial.path, { force: true });
  partial.bytes = 0;
  return new HubError(
    "wrong-length",
    `${shown(partial.url)}: ${what}; nothing was kept. Try again, or use another mirror`,
  );
}

async function check(partial: Partial, { size, tag }: Declared): Promise<void> {
  if (size !== undefined && partial.bytes < size) throw brokenOff(partial, size);
  if (size !== undefined && partial.bytes > size)
    throw await wrongLength(partial, `the hub says that it has ${size} bytes, more came`);
  const hash = hashOfTag(tag, partial.bytes);
  if (hash === undefined) return;
  for await (const piece of createReadStream(partial.path, { highWaterMark: 1 << 20 }))
    hash.update(piece as Buffer);
  const found = hash.digest("hex");
  if (found === tag) return;
  await rm(partial.path, { force: true });
  throw new HubError(
    "wrong-hash",
    `${shown(partial.url)}: what came has the hash ${found.slice(0, 12)}…, the hub says ${tag?.slice(0, 12)}…; nothing was kept. Try again, or use another mirror`,
  );
}

/** The tag of a large file is its SHA-256, that of a small one its Git blob hash; others say nothing. */
function hashOfTag(tag: string | undefined, bytes: number): Hash | undefined {
  if (tag !== undefined && /^[0-9a-f]{64}$/.test(tag)) return createHash("sha256");
  if (tag !== undefined && /^[0-9a-f]{40}$/.test(tag)) return createHash("sha1").update(`blob ${bytes}\0`);
  return undefined;
}
