/**
 * The begin of a build of a LanceDB table: a new table, or that of an interrupted build, which one build at a time writes. On this
 * machine a lock keeps others away; in an object store the manifest names the build that was started last, and the one
 * before it stops.
 */
import { randomUUID } from "node:crypto";
import { rmdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { FileError, RetrieverError } from "../../errors.ts";
import { exists } from "../../shared/files.ts";
import { canonicalJson } from "../../shared/hash.ts";
import { lockBuild } from "../index-folder-lock.ts";
import { INDEX_MANIFEST } from "../index-folder-manifest.ts";
import { type LanceSettings, manifestTable, readManifest, writeManifest } from "./lance-manifest.ts";
import { type LanceTable, loadLance } from "./lance-module.ts";
import {
  answerWithin,
  checkNames,
  isFolder,
  type LancePlace,
  OPENING_MS,
  openPlace,
  type PlaceOptions,
} from "./lance-place.ts";
import { rowSchema } from "./lance-rows.ts";

/** Keeps other builds on this machine away from a folder; returns how to let them in. Throws `ConfigError`, `FileError` and `RetrieverError`. */
export async function lockPlace(uri: string, table: string): Promise<() => Promise<void>> {
  if (!isFolder(uri)) return async () => undefined;
  checkNames(uri, table);
  await requireFolder(uri);
  loadLance(); // where it is missing, no folder is made
  const work = join(uri, `.${table}.building`);
  const release = await lockBuild(work, `the table ${table} in ${uri}`);
  return async () => {
    await release();
    await rmdir(work).catch(() => undefined);
  };
}

/** Throws `FileError` for what cannot become, or hold, a folder of tables. */
async function requireFolder(uri: string): Promise<void> {
  const found = await stat(uri).catch(() => undefined);
  if (found !== undefined && !found.isDirectory())
    throw new FileError(`${uri} is a file, expected a new folder or one with tables; choose another place`);
  if (await exists(join(uri, INDEX_MANIFEST)))
    throw new FileError(`${uri} is an index folder, which holds no tables; choose another place`);
}

export interface OpenBuild {
  readonly place: LancePlace;
  readonly table: LanceTable;
  /** Throws `RetrieverError` once another build has begun. */
  checkOurs(): Promise<void>;
}

interface BeginOptions extends PlaceOptions {
  readonly signal?: AbortSignal | undefined;
}

/** Begins or goes on. Throws what `buildLanceTable` throws for a place or a table that cannot be used. */
export async function openLanceBuild(
  uri: string,
  options: BeginOptions,
  settings: LanceSettings,
): Promise<OpenBuild> {
  return await answerWithin(
    (givenUp) => beginIn(uri, { ...options, signal: givenUp }, settings),
    `cannot open the table ${options.table} in ${uri}`,
    {
      limitMs: OPENING_MS,
      signal: options.signal,
      discard: ({ place, table }) => {
        table.close();
        place.connection.close();
      },
    },
  );
}

async function beginIn(uri: string, options: BeginOptions, settings: LanceSettings): Promise<OpenBuild> {
  const place = await openPlace(uri, options);
  const builder = randomUUID();
  try {
    const table = await beginOrResume(place, options, { settings, builder });
    const checkOurs = async (): Promise<void> => {
      const manifest = await readManifest(place, options.table);
      if (manifest?.state === "building" && manifest.builder === builder) return;
      throw new RetrieverError(
        `another build of the table ${place.name} was started; this one stops, what it wrote is kept, and the other goes on`,
      );
    };
    return { place, table, checkOurs };
  } catch (error) {
    place.connection.close();
    throw error;
  }
}

/** A new table, or the one of an interrupted build with the same settings. */
async function beginOrResume(
  place: LancePlace,
  { table: name, signal }: BeginOptions,
  { settings, builder }: { readonly settings: LanceSettings; readonly builder: string },
): Promise<LanceTable> {
  const manifest = await readManifest(place, name);
  const table = await place.find(name);
  if (manifest === undefined && table !== undefined)
    throw new FileError(`a table ${place.name} exists that Forager did not make; choose another name`);
  if (manifest?.state === "finished")
    throw new FileError(
      `the table ${place.name} is finished already (${manifest.count} passages); choose another place or name, or drop it and ${manifestTable(name)}`,
    );
  if (manifest !== undefined && canonicalJson(manifest.settings) !== canonicalJson(settings))
    throw new RetrieverError(
      `the interrupted build of ${place.name} had other settings: expected ${canonicalJson(manifest.settings)}, got ` +
        `${canonicalJson(settings)}; build with those, or drop the tables ${name} and ${manifestTable(name)}`,
    );
  signal?.throwIfAborted(); // once given up, the lock is no longer held
  await writeManifest(place, name, { state: "building", settings, builder });
  if (table !== undefined) return table;
  signal?.throwIfAborted();
  const schema = rowSchema(place.arrow, settings.encoder?.dimensions);
  return place.attempt(`cannot make the table ${place.name}`, () =>
    place.connection.createEmptyTable(name, schema),
  );
}
