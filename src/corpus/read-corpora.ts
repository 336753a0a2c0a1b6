/**
 * Any corpus as passages: files and folders of every format as one corpus, in order, with ids that are unique over all
 * of them. Reading streams; memory holds some 16 to 64 bytes a passage, to find repeats. What is wrong with a line
 * stops the reading or is skipped and reported; a damaged file stops it always, since what is missing is unknown.
 */
import { z } from "zod";
import { ConfigError, DataFormatError } from "../errors.ts";
import { Admission } from "./admission.ts";
import { type ChunkOptions, type CountTokens, chunkOptionsSchema } from "./chunk.ts";
import type { CorpusFormat, CorpusOptions } from "./corpus-options.ts";
import { type CorpusProblem, type CorpusReport, newCorpusReport } from "./corpus-report.ts";
import { type CutOptions, cutDocument } from "./cut-document.ts";
import { makeDecoder } from "./formats/decode.ts";
import { isDocumentFormat } from "./formats/detect.ts";
import { type CorpusFile, findFiles } from "./formats/find-files.ts";
import type { OnBytes } from "./formats/open-bytes.ts";
import { type CorpusItem, readFileItems } from "./formats/read-file.ts";
import type { Passage } from "./passage.ts";
import { type PassageKeys, passageKeys, readRecord } from "./passage-record.ts";

/** The options of `corpusOptionsSchema` and what only a program can give. */
export interface ReadCorporaOptions extends Partial<CorpusOptions> {
  /** Default true, unlike in the schema: who does not ask for problems must not miss them. */
  readonly strict?: boolean | undefined;
  /** Counts tokens for `chunk.by` "tokens". */
  readonly countTokens?: CountTokens | undefined;
  /** Told of each problem as it comes, when reading is not strict; equal passages always. */
  readonly onProblem?: ((problem: CorpusProblem) => void) | undefined;
  /** Counts up while passages are taken; made by `newCorpusReport`. */
  readonly report?: CorpusReport | undefined;
  /** Bytes read from the disk so far and in all, after each piece. */
  readonly onProgress?: ((bytesRead: number, bytesTotal: number) => void) | undefined;
}

/**
 * The passages of files and folders in order. Throws `FileError`; `DataFormatError` (file, line) for a damaged file, for
 * a corpus without passages and, when strict, for the first bad line, repeated id or empty passage; `ConfigError` for
 * options that cannot be used.
 */
export async function* readCorpora(
  paths: readonly string[],
  options: ReadCorporaOptions = {},
): AsyncGenerator<Passage> {
  const settings = settingsOf(options);
  const { files, skipped } = await findFiles(paths, settings.format);
  const { report, admission } = settings;
  const before = report.passages;
  for (const error of skipped) admission.refuse("skippedFile", error);
  const onBytes = progressOf(files, options.onProgress);
  for (const file of files) {
    const beforeFile = report.passages;
    const problemsBefore = problemCount(report);
    admission.startFile(file.path);
    try {
      const { format, batches } = await readFileItems(file, { ...settings, onBytes });
      for await (const batch of batches)
        for (const item of batch)
          for (const passage of passagesOf(item, { file, format, settings }))
            if (admission.admits(passage, item.line)) yield passage;
    } catch (error) {
      // A damaged document among others is one lost; a damaged file of records is an unknown number.
      const isOneOfMany = file.isFound && file.format !== undefined && isDocumentFormat(file.format);
      if (!isOneOfMany || !(error instanceof DataFormatError)) throw error;
      admission.refuse("skippedFile", error);
      continue;
    }
    if (report.passages === beforeFile && problemCount(report) === problemsBefore)
      admission.refuse("emptyFile", noPassages(file.path, report));
  }
  if (report.passages === before) throw noPassages(paths.join(", "), report);
}

/** Everything that stays the same while a corpus is read. */
interface Settings {
  readonly format: CorpusFormat | undefined;
  readonly encoding: string | undefined;
  readonly keys: PassageKeys;
  readonly chunk: ChunkOptions | undefined;
  readonly countTokens: CountTokens | undefined;
  readonly report: CorpusReport;
  readonly admission: Admission;
}

function settingsOf(options: ReadCorporaOptions): Settings {
  const { format, encoding, columns = {}, onProblem, dropDuplicates = false } = options;
  // An unknown encoding is the first thing to say, not the last.
  if (encoding !== undefined) makeDecoder(encoding);
  const report = options.report ?? newCorpusReport();
  const isWatched = options.report !== undefined || onProblem !== undefined;
  const admission = new Admission({
    isStrict: options.strict ?? true,
    dropDuplicates,
    countDuplicates: isWatched || dropDuplicates,
    report,
    onProblem,
  });
  return {
    format: format === "auto" ? undefined : format,
    encoding,
    keys: keysOf(columns),
    chunk: parseChunk(options.chunk),
    countTokens: options.countTokens,
    report,
    admission,
  };
}

function keysOf(columns: NonNullable<CorpusOptions["columns"]>): PassageKeys {
  const { id, title, text } = columns;
  return {
    id: id === undefined ? passageKeys.id : [id],
    title: title === undefined ? passageKeys.title : [title],
    text: text === undefined ? passageKeys.text : [text],
  };
}

function parseChunk(chunk: CorpusOptions["chunk"]): ChunkOptions | undefined {
  if (chunk === undefined) return undefined;
  const parsed = chunkOptionsSchema.safeParse(chunk);
  if (!parsed.success) throw new ConfigError(`chunk: ${z.prettifyError(parsed.error)}`, { path: "chunk" });
  return parsed.data;
}

/** How documents are cut when nobody says otherwise: the size that readers of wiki-18 expect. */
const documentChunk: ChunkOptions = { by: "words", size: 100, overlap: 0, wholeSentences: true };
/** As wiki-18 was cut. */
const articleChunk: ChunkOptions = { ...documentChunk, wholeSentences: false };

interface ItemContext {
  readonly file: CorpusFile;
  readonly format: CorpusFormat;
  readonly settings: Settings;
}

/** The passages of a record or document; what is wrong with it is noted or thrown. */
function passagesOf(item: CorpusItem, { file, format, settings }: ItemContext): readonly Passage[] {
  const { keys, chunk, countTokens, admission } = settings;
  if ("error" in item) {
    admission.refuse("badLine", item.error);
    return none;
  }
  if ("document" in item) {
    const otherwise = format === "wikipedia" ? articleChunk : documentChunk;
    const passages = cutDocument(item.id, item.document, { chunk: chunk ?? otherwise, countTokens });
    if (passages.length === 0)
      admission.refuse(
        "emptyPassage",
        new DataFormatError(file.path, item.line, "expected a text, got an empty one"),
      );
    return passages;
  }
  const passage = readRecord(item.record, { path: file.path, line: item.line, keys });
  if ("error" in passage) {
    admission.refuse(passage.kind, passage.error);
    return none;
  }
  return chunk === undefined ? [passage] : cutPassage(passage, { chunk, countTokens });
}

const none: readonly Passage[] = [];

/** A record that is a title alone has nothing to cut and stays. */
function cutPassage(passage: Passage, options: CutOptions): readonly Passage[] {
  return passage.text.trim() === "" ? [passage] : cutDocument(passage.id, passage, options);
}

function problemCount({ badLines, duplicateIds, emptyPassages, duplicatePassages }: CorpusReport): number {
  return badLines + duplicateIds + emptyPassages + duplicatePassages;
}

function noPassages(path: string, { problems }: CorpusReport): DataFormatError {
  const first = problems.find(({ kind }) => kind !== "emptyFile");
  const reason = first === undefined ? "" : `; the first problem: ${first.error.message}`;
  return new DataFormatError(
    path,
    undefined,
    `expected passages, one JSON object a line such as {"id":"1","title":"…","text":"…"} or another format, got none${reason}`,
  );
}

/** Sums up what is read of all files; rounding of compressed sizes never leads beyond the total. */
function progressOf(files: readonly CorpusFile[], onProgress: ReadCorporaOptions["onProgress"]): OnBytes {
  const total = files.reduce((sum, { bytes }) => sum + bytes, 0);
  let read = 0;
  return (count) => {
    read = Math.min(total, read + count);
    onProgress?.(read, total);
  };
}
