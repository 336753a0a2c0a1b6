/**
 * Models from a hub of the Hugging Face kind: `ENDPOINT/OWNER/NAME/resolve/REVISION/PATH`, see `hub-download.ts`.
 *
 * The cache is plain: `CACHE/OWNER/NAME/REVISION/PATH`, beside `download.json` with the commit the files are of. A
 * file that is there is not asked for again. Not covered: uploads, hubs with other paths, transfer by chunks.
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { ConfigError, FileError } from "../errors.ts";
import { exists, fileError, writeFileAtomic } from "./files.ts";
import { type DownloadOptions, downloadFile } from "./hub-download.ts";
import { HubError } from "./hub-http.ts";

export type { DownloadOptions, DownloadProgress } from "./hub-download.ts";
export { HubError, type HubFailure } from "./hub-http.ts";

export const PUBLIC_HUB = "https://huggingface.co";

export interface HubOptions extends DownloadOptions {
  /** Address of the hub; `PUBLIC_HUB` unless the user says otherwise. */
  readonly endpoint: string;
  /** Where files are kept. */
  readonly cacheFolder: string;
  /** Take only what is in the cache already. */
  readonly offline?: boolean;
}

/** A model on a hub. */
export interface HubReference {
  /** `owner/name` */
  readonly repository: string;
  /** A branch, tag or commit. */
  readonly revision: string;
}

/** One wanted file: the first of the paths that the model has. */
export interface WantedFile {
  readonly anyOf: readonly string[];
  /** A model without it is accepted. */
  readonly optional?: boolean;
}

const pattern = /^hf:([\w.-]+\/[\w.-]+)(?:@([\w./-]+))?$/;

/** Whether a model is named by its place on a hub (`hf:owner/name[@revision]`), not by a folder. */
export function isHubReference(model: string): boolean {
  return model.startsWith("hf:");
}

/** Reads `hf:owner/name[@revision]`; the revision is `main` when absent. Throws `ConfigError`. */
export function parseHubReference(model: string): HubReference {
  const [, repository, revision = "main"] = pattern.exec(model) ?? [];
  const isPlain = (path: string): boolean => path.split("/").every((part) => !/^\.*$/.test(part));
  if (repository === undefined || !isPlain(repository) || !isPlain(revision))
    throw new ConfigError(`expected hf:owner/name or hf:owner/name@revision, got ${JSON.stringify(model)}`);
  return { repository, revision };
}

/**
 * Makes sure that the wanted files of a model are in the cache and returns the folder they lie in. All files are of
 * one commit, also when a branch moves on meanwhile. Throws `HubError` with a reason, `FileError`, `ConfigError`,
 * and the signal's reason.
 */
export async function downloadModel(
  model: HubReference,
  wanted: readonly WantedFile[],
  options: HubOptions,
): Promise<string> {
  const folder = join(
    options.cacheFolder,
    ...model.repository.split("/"),
    encodeURIComponent(model.revision),
  );
  const { commit, absent } = await readRecord(folder);
  const cache: ModelCache = { model, folder, commit, absent: new Set(absent) };
  for (const file of wanted) await provide(cache, file, options);
  return folder;
}

interface ModelCache {
  readonly model: HubReference;
  readonly folder: string;
  /** Of the first file that came; the others are asked for at it. */
  commit: string | undefined;
  /** Files that the commit does not have, so that they are not asked for at each start. */
  readonly absent: Set<string>;
}

async function provide(
  cache: ModelCache,
  { anyOf, optional }: WantedFile,
  options: HubOptions,
): Promise<void> {
  let absent: HubError | undefined;
  for (const path of anyOf) if (await exists(join(cache.folder, ...safeParts(path)))) return;
  if (options.offline) {
    if (optional) return;
    throw notCached(cache, anyOf);
  }
  for (const path of anyOf.filter((each) => !optional || !cache.absent.has(each))) {
    try {
      return await download(cache, path, options);
    } catch (error) {
      if (!(error instanceof HubError) || error.reason !== "not-found") throw error;
      absent ??= error;
      if (cache.commit === undefined) continue;
      cache.absent.add(path);
      await writeRecord(cache);
    }
  }
  if (!optional) throw noneOf(cache, anyOf, absent);
}

async function download(cache: ModelCache, path: string, options: HubOptions): Promise<void> {
  const { model, folder } = cache;
  const revision = cache.commit ?? model.revision;
  const parts = [...model.repository.split("/"), "resolve", revision, ...safeParts(path)];
  const address = `${options.endpoint.replace(/\/+$/, "")}/${parts.map(encodeURIComponent).join("/")}`;
  const url = URL.parse(address);
  if (url === null || !/^https?:$/.test(url.protocol))
    throw new ConfigError(
      `the address of the hub must be a URL such as ${PUBLIC_HUB}, got ${JSON.stringify(options.endpoint.replace(/\/\/[^/]*@/, "//"))}`,
    );
  const { commit } = await downloadFile(url, join(folder, ...safeParts(path)), options);
  if (cache.commit !== undefined || commit === undefined) return;
  cache.commit = commit;
  await writeRecord(cache);
}

/** The commit that the files of a folder of the cache are of, where the hub said so. Throws `FileError`. */
export async function downloadedCommit(folder: string): Promise<string | undefined> {
  return (await readRecord(folder)).commit;
}

async function writeRecord({ folder, commit, absent }: ModelCache): Promise<void> {
  const record = { commit, absent: [...absent].sort() };
  await writeFileAtomic(join(folder, RECORD), `${JSON.stringify(record, null, 2)}\n`);
}

function notCached({ model, folder }: ModelCache, paths: readonly string[]): FileError {
  return new FileError(
    `${model.repository}@${model.revision} is not complete in ${folder} (${paths.join(" or ")} is missing) and downloads are switched off; download it first`,
  );
}

function noneOf({ model }: ModelCache, paths: readonly string[], cause: HubError | undefined): HubError {
  if (paths.length === 1 && cause !== undefined) return cause;
  return new HubError(
    "not-found",
    `${model.repository}@${model.revision} has none of ${paths.join(", ")}; check name and revision, or choose a model with such a file`,
    { cause },
  );
}

/** The parts of a path within a model; refuses what could lead out of the cache. */
function safeParts(path: string): string[] {
  const parts = path.split("/");
  if (parts.some((part) => part === "" || part === "." || part === ".." || /[\\\0:]/.test(part)))
    throw new ConfigError(
      `expected a path within the model, such as onnx/model.onnx, got ${JSON.stringify(path)}`,
    );
  return parts;
}

const RECORD = "download.json";
const recordSchema = z.strictObject({ commit: z.string(), absent: z.array(z.string()) });

async function readRecord(
  folder: string,
): Promise<{ readonly commit: string | undefined; readonly absent: readonly string[] }> {
  const path = join(folder, RECORD);
  if (!(await exists(path))) return { commit: undefined, absent: [] };
  try {
    return recordSchema.parse(JSON.parse(await readFile(path, "utf8")));
  } catch (cause) {
    if (cause instanceof z.ZodError || cause instanceof SyntaxError)
      throw new FileError(`${path} is damaged; remove ${folder} and download the model again`, { cause });
    throw fileError(`cannot read ${path}`, cause);
  }
}
