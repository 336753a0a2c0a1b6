/**
 * LanceDB tables from the command line: built from a corpus, and opened for searching. An object store is reached as the
 * environment says (AWS_ENDPOINT, AWS_ACCESS_KEY_ID, …), which LanceDB reads by itself; recipes can say more.
 */
import { join } from "node:path";
import { describeReport, newCorpusReport, skippedCount } from "../corpus/corpus-report.ts";
import { type ReadCorporaOptions, readCorpora } from "../corpus/read-corpora.ts";
import { UsageError } from "../errors.ts";
import { startProgress } from "../reporting/progress.ts";
import { openEncoderReference } from "../retrieval/encoder-reference.ts";
import { buildLanceTable } from "../retrieval/lance/build-lance-table.ts";
import { manifestTable } from "../retrieval/lance/lance-manifest.ts";
import { type LanceRetriever, lanceRetriever } from "../retrieval/lance/lance-retriever.ts";
import type { SearchOptions } from "../retrieval/search-folder.ts";
import type { Closers } from "../shared/closers.ts";
import { exists } from "../shared/files.ts";
import { processWorld } from "../training/world.ts";
import type { CommandIo, CommandResult } from "./command.ts";
import type { IndexSettings } from "./index-settings.ts";

const TABLE = "passages";

/** Whether a place is an object store, or a folder with a table of LanceDB. */
export async function isLancePlace(place: string): Promise<boolean> {
  if (/^[a-z0-9]+:\/\//.test(place)) return true;
  const tables = [TABLE, manifestTable(TABLE)].map((table) => exists(join(place, `${table}.lance`)));
  return (await Promise.all(tables)).includes(true);
}

export interface LanceJob {
  readonly uri: string;
  readonly settings: IndexSettings;
  readonly reading: ReadCorporaOptions;
  /** The encoder, where vectors are wanted. */
  readonly model: string | undefined;
}

/** Builds the table, or goes on with it. Throws what `readCorpora` and `buildLanceTable` throw. */
export async function indexIntoLance(
  paths: readonly string[],
  { uri, settings, reading, model }: LanceJob,
  io: CommandIo,
): Promise<CommandResult> {
  const started = io.progress.now();
  const { language, stopWords, stemming, folding, titleWeight } = settings.lexical;
  const report = newCorpusReport();
  const encoder =
    model === undefined
      ? undefined
      : await openEncoderReference({ ...settings.encoder, model }, processWorld(io));
  const progress = startProgress({ label: "indexing", total: 1, unit: "corpus" }, io.progress);
  try {
    const built = await buildLanceTable(readCorpora(paths, { ...reading, report }), uri, {
      table: TABLE,
      build: { language, stopWords, stemming, folding, titleWeight },
      ...(encoder && { encoder }),
      signal: io.signal,
      onProgress: ({ stage, passages }) => progress.update(0, `${passages} passages, ${stage}`),
    });
    progress.finish();
    for (const line of describeReport(report)) io.note(line);
    const seconds = (io.progress.now() - started) / 1000;
    io.print(`${built.count} passages are in the table ${TABLE} of ${uri} (${seconds.toFixed(1)} s)`);
    const peakBytes = process.resourceUsage().maxRSS * 1024;
    const { count: passages, corpusHash } = built;
    const dropped = settings.corpus.dropDuplicates ? report.duplicatePassages : 0;
    const skipped = skippedCount(report) + report.skippedFiles + dropped;
    return {
      json: { index: uri, passages, skipped, seconds, peakBytes, bytes: null, corpusHash, method: "lance" },
    };
  } finally {
    await encoder?.close();
  }
}

/** Opens the table of `uri` for searching. Throws `UsageError` for options that only an index folder has. */
export async function openLance(
  uri: string,
  { mode = "auto", encoder: reference, rerank, approximate, storage }: SearchOptions,
  { io, opened }: { readonly io: CommandIo; readonly opened: Closers },
): Promise<LanceRetriever> {
  const folderOnly = {
    rerank,
    approximate: approximate || undefined,
    storage: storage === "auto" ? undefined : storage,
  };
  const unknown = Object.entries(folderOnly).find(([, value]) => value !== undefined)?.[0];
  if (unknown !== undefined)
    throw new UsageError(`--${unknown} is for index folders, and ${uri} is a LanceDB table; leave it out`);
  const chosen = mode === "auto" ? (reference === undefined ? "bm25" : "hybrid") : mode;
  if (chosen !== "bm25" && reference === undefined)
    throw new UsageError(
      `--mode ${chosen} over a LanceDB table needs --encoder MODEL, the one it was built with`,
    );
  const encoder =
    chosen === "bm25" || reference === undefined
      ? undefined
      : await openEncoderReference(reference, processWorld(io));
  if (encoder) opened.defer(() => encoder.close());
  const retriever = await lanceRetriever(uri, {
    table: TABLE,
    mode: chosen,
    signal: io.signal,
    ...(encoder && { encoder }),
  });
  opened.defer(() => retriever.close());
  return retriever;
}
