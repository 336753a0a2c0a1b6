/**
 * Builds a LanceDB table from a stream of passages: pieces of rows, each committed at once, then the text index, then
 * the vector index. Memory holds one piece. A build that was killed goes on when it is started again with the same
 * passages and settings: those that are in the table are only read and hashed, and compared with its last checkpoint.
 */
import { createHash } from "node:crypto";
import { corpusHasher } from "../../corpus/corpus-hash.ts";
import type { Passage } from "../../corpus/passage.ts";
import { passageLine } from "../../corpus/passage-record.ts";
import { ConfigError, RetrieverError } from "../../errors.ts";
import type { Encoder } from "../dense/encoder.ts";
import { indexText, indexVectors } from "./lance-indexes.ts";
import { type LanceSettings, manifestTable, writeManifest } from "./lance-manifest.ts";
import type { LanceTable } from "./lance-module.ts";
import { type LanceBuildOptions, type LanceStorage, lanceBuildSchema } from "./lance-options.ts";
import type { LancePlace } from "./lance-place.ts";
import { arrowRows } from "./lance-rows.ts";
import { type LanceTerms, lanceTerms } from "./lance-terms.ts";
import { lockPlace, type OpenBuild, openLanceBuild } from "./open-lance-build.ts";

export interface LanceProgress {
  readonly stage: "passages" | "text index" | "vector index";
  /** Passages in the table. */
  readonly passages: number;
}

export interface BuildLanceOptions {
  readonly table: string;
  readonly storage?: LanceStorage;
  /** Adds vectors; absent: the table is searched by words only. */
  readonly encoder?: Encoder;
  /** As in `lanceBuildSchema`. */
  readonly build?: Partial<LanceBuildOptions>;
  /** Passages that are committed at once; default 8192, with an encoder 2048. */
  readonly batchSize?: number;
  readonly signal?: AbortSignal;
  readonly onProgress?: (progress: LanceProgress) => void;
}

export interface BuiltLanceTable {
  readonly count: number;
  readonly corpusHash: string;
  /** Passages that were in the table already, from a build that was interrupted. */
  readonly resumedAt: number;
}

/** A piece ends when its passages have so many characters, however few they are. */
const PIECE_CHARACTERS = 32 * 2 ** 20;

/**
 * Builds the table `options.table` in `uri` (a folder, or `s3://BUCKET/PREFIX`), or goes on with an interrupted build of
 * it. Throws `FileError` when a table of that name is finished, not ours, or being built on this machine, `ConfigError` for options that cannot be
 * used, `RetrieverError` when LanceDB fails or is missing, passages or settings differ from the interrupted build's, or another
 * build writes the table.
 */
export async function buildLanceTable(
  passages: Iterable<Passage> | AsyncIterable<Passage>,
  uri: string,
  options: BuildLanceOptions,
): Promise<BuiltLanceTable> {
  const settings = settingsOf(options);
  options.signal?.throwIfAborted();
  const release = await lockPlace(uri, options.table);
  try {
    return await buildIn(passages, { uri, settings }, options);
  } finally {
    await release();
  }
}

async function buildIn(
  passages: Iterable<Passage> | AsyncIterable<Passage>,
  { uri, settings }: { readonly uri: string; readonly settings: LanceSettings },
  options: BuildLanceOptions,
): Promise<BuiltLanceTable> {
  const { signal } = options;
  const opened = await openLanceBuild(uri, options, settings);
  const { place, table } = opened;
  try {
    const writer = await TableWriter.open(opened, { ...options, settings });
    const { count, corpusHash } = await writer.addAll(passages);
    const work = { place, table, settings, count };
    options.onProgress?.({ stage: "text index", passages: count });
    await indexText(work);
    signal?.throwIfAborted();
    if (options.encoder) options.onProgress?.({ stage: "vector index", passages: count });
    const recall = options.encoder ? await indexVectors(work, signal) : null;
    await opened.checkOurs();
    await writeManifest(place, options.table, { state: "finished", settings, count, corpusHash, recall });
    return { count, corpusHash, resumedAt: writer.resumedAt };
  } finally {
    table.close();
    place.connection.close();
  }
}

function settingsOf({ build, encoder, batchSize }: BuildLanceOptions): LanceSettings {
  const parsed = lanceBuildSchema.safeParse(build ?? {});
  if (!parsed.success)
    throw new ConfigError(`options of a LanceDB table: ${parsed.error.issues[0]?.message}`);
  if (batchSize !== undefined && !(Number.isInteger(batchSize) && batchSize >= 1))
    throw new ConfigError(`batchSize must be an integer of at least 1, got ${batchSize}`);
  const { name, hash, dimensions } = encoder?.identity ?? {};
  return {
    build: parsed.data,
    encoder:
      name === undefined || hash === undefined || dimensions === undefined
        ? null
        : { name, hash, dimensions },
  };
}

interface WriterOptions extends BuildLanceOptions {
  readonly settings: LanceSettings;
}

/** Adds the passages that are not in the table yet, piece by piece. */
class TableWriter {
  readonly #build: OpenBuild;
  readonly #place: LancePlace;
  readonly #table: LanceTable;
  readonly #options: WriterOptions;
  readonly #terms: LanceTerms;
  readonly #prefix = createHash("sha256");
  readonly #corpus = corpusHasher();
  /** What the prefix must hash to when so many passages were read; from the table. */
  readonly #checkpoint: string | undefined;
  readonly resumedAt: number;
  #version: number;
  #seen = 0;
  #piece: Passage[] = [];
  #lines: string[] = [];
  #characters = 0;

  private constructor(
    parts: { readonly build: OpenBuild; readonly options: WriterOptions },
    found: { readonly version: number; readonly count: number; readonly checkpoint: string | undefined },
  ) {
    this.#build = parts.build;
    this.#place = parts.build.place;
    this.#table = parts.build.table;
    this.#options = parts.options;
    this.#terms = lanceTerms(parts.options.settings.build);
    this.#version = found.version;
    this.resumedAt = found.count;
    this.#checkpoint = found.checkpoint;
  }

  static async open(build: OpenBuild, options: WriterOptions): Promise<TableWriter> {
    const { place, table } = build;
    const found = await place.attempt(`cannot read the table ${place.name}`, async () => {
      const [version, count] = [await table.version(), await table.countRows()];
      if (count === 0) return { version, count, checkpoint: undefined };
      const last = `position = ${count - 1}`;
      const rows = await table.query().where(last).select(["checkpoint"]).limit(2).toArrow();
      const checkpoint = rows.numRows === 1 ? rows.getChild("checkpoint")?.get(0) : undefined;
      if (typeof checkpoint === "string") return { version, count, checkpoint };
      throw new RetrieverError(
        `the interrupted build of ${place.name} is damaged: ${count} rows, but none is the last of a piece; ` +
          `drop the tables ${options.table} and ${manifestTable(options.table)}, or choose another place, and build again`,
      );
    });
    return new TableWriter({ build, options }, found);
  }

  async addAll(
    passages: Iterable<Passage> | AsyncIterable<Passage>,
  ): Promise<{ count: number; corpusHash: string }> {
    const { encoder, signal, batchSize = encoder ? 2048 : 8192 } = this.#options;
    for await (const passage of passages) {
      const line = passageLine(passage);
      this.#corpus.add(passage);
      this.#prefix.update(`${line}\n`);
      this.#seen++;
      if (this.#seen === this.resumedAt) this.#checkPrefix();
      if (this.#seen <= this.resumedAt) continue;
      this.#piece.push(passage);
      this.#lines.push(line);
      this.#characters += line.length;
      if (this.#piece.length < batchSize && this.#characters < PIECE_CHARACTERS) continue;
      signal?.throwIfAborted();
      await this.#commit();
    }
    signal?.throwIfAborted();
    if (this.#seen < this.resumedAt) this.#refuseOtherPassages(`only ${this.#seen}`);
    if (this.#seen === 0)
      throw new RetrieverError("cannot build a table of an empty corpus; expected at least one passage");
    if (this.#piece.length > 0) await this.#commit();
    return { count: this.#seen, corpusHash: this.#corpus.digest() };
  }

  #checkPrefix(): void {
    if (this.#prefix.copy().digest("hex") !== this.#checkpoint) this.#refuseOtherPassages("others");
  }

  #refuseOtherPassages(came: string): never {
    const { table } = this.#options;
    throw new RetrieverError(
      `the interrupted build of ${this.#place.name} began with other passages: expected the ${this.resumedAt} that are ` +
        `in it, got ${came}; give the same corpus, or drop the tables ${table} and ${manifestTable(table)}`,
    );
  }

  async #commit(): Promise<void> {
    const { encoder, signal, onProgress } = this.#options;
    const rows = arrowRows(this.#place.arrow, {
      first: this.#seen - this.#piece.length,
      lines: this.#lines,
      terms: this.#piece.map((passage) => this.#terms.ofPassage(passage)),
      vectors: await encoder?.encodePassages(this.#piece, { signal }),
      checkpoint: this.#prefix.copy().digest("hex"),
    });
    await this.#build.checkOurs();
    const version = await this.#place.attempt(`cannot write to the table ${this.#place.name}`, async () => {
      await this.#table.add(rows);
      return this.#table.version();
    });
    if (version !== this.#version + 1)
      throw new RetrieverError(
        `another build writes to the table ${this.#place.name}; stop both, drop the table, and start one again`,
      );
    this.#version = version;
    this.#piece = [];
    this.#lines = [];
    this.#characters = 0;
    onProgress?.({ stage: "passages", passages: this.#seen });
  }
}
