/**
 * `forager index`: a corpus to an index folder that `search`, `eval` and recipes open. Memory is bounded, and a build
 * that was cut off goes on when the same command is given again.
 */
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { corpusHasher } from "../../corpus/corpus-hash.ts";
import {
  type CorpusReport,
  describeReport,
  newCorpusReport,
  skippedCount,
} from "../../corpus/corpus-report.ts";
import { type ReadCorporaOptions, readCorpora } from "../../corpus/read-corpora.ts";
import { readingOptions } from "../../corpus/reading-options.ts";
import { FileError, UsageError } from "../../errors.ts";
import { type Progress, startProgress } from "../../reporting/progress.ts";
import { removeRests as removeVectorRests } from "../../retrieval/dense/build-dense.ts";
import { denseFolder } from "../../retrieval/encoder-reference.ts";
import { buildIndexFolder, openIndex, removeRests } from "../../retrieval/index-folder.ts";
import type { Bm25Options } from "../../retrieval/lexical/bm25.ts";
import { exists } from "../../shared/files.ts";
import { canonicalJson } from "../../shared/hash.ts";
import { commandLine } from "../../shared/shell-word.ts";
import { addGraphTo, addVectors, requireEncoder, type Vectors } from "../add-vectors.ts";
import { type CommandIo, defineCommand, type OptionValues } from "../command.ts";
import { countTokensBy, tokenizerFlag } from "../count-tokens.ts";
import { type IndexSettings, indexSettings } from "../index-settings.ts";
import { indexIntoLance, isLancePlace } from "../lance-table.ts";
import { requireNewPath } from "../new-path.ts";

const options = {
  out: {
    type: "text",
    value: "FOLDER",
    isRequired: true,
    doc: "New folder for the index, or s3://BUCKET/PREFIX.",
  },
  dense: {
    type: "text",
    value: "MODEL",
    doc: "Encode passages with this model: a folder with an ONNX file, or hf:owner/name.",
  },
  lance: { type: "flag", doc: "Make a LanceDB table (installed apart), as s3://… always does." },
  approximate: { type: "flag", doc: "Build a graph for approximate search, also over vectors that exist." },
  format: {
    type: "text",
    value: "NAME",
    doc: "Format of the files, such as tsv; default: by name and content.",
  },
  encoding: { type: "text", value: "NAME", doc: "Encoding of texts, such as windows-1252; default UTF-8." },
  strict: { type: "flag", doc: "Stop at the first bad line, repeated id or empty passage." },
  tokenizer: tokenizerFlag,
  memory: {
    type: "integer",
    value: "MIB",
    least: 16,
    doc: "Memory for what is not on disk yet; default 256. More is a little faster.",
  },
  set: {
    type: "list",
    value: "KEY=VALUE",
    doc: "An option of corpus, retriever or encoder, such as b=0.4 or chunk.by=sentences; repeatable.",
  },
} as const;
type Flags = OptionValues<typeof options>;

export const indexCommand = defineCommand({
  name: "index",
  summary: "Index a corpus, so that it can be searched.",
  details:
    "A corpus is files or folders in any format of docs/corpora.md: JSON lines, Parquet, CSV and TSV, BEIR folders,\n" +
    "Markdown, HTML, text, PDF, DOCX, Wikipedia dumps; also packed (.gz, .zst, .bz2). --dense adds vectors, and\n" +
    "--approximate a graph over them, also to an index that exists (then without CORPUS). What was cut off goes on when\n" +
    "the same command is given again.",
  args: [
    { name: "CORPUS", doc: "files or folders, indexed as one corpus", isRepeated: true, isOptional: true },
  ],
  options,
  examples: [
    "index passages.jsonl --out index",
    "index part-1.jsonl.gz part-2.jsonl.gz --out index --set k1=0.9",
    "index docs/ --out index --set chunk.by=words --set chunk.size=150",
    "index --out index --dense models/bge-small-en-v1.5",
    "index --out index --approximate",
    "index wiki-18.jsonl.gz --out s3://bucket/wiki",
  ],
  async run({ args, options }, io) {
    const { out, dense } = options;
    const settings = indexSettings(options);
    requireUsed(options, args.length > 0);
    const started = io.progress.now();
    if (args.length === 0 && dense === undefined && !options.approximate)
      throw new UsageError(
        "index: name a corpus, or a model with --dense to add vectors to an index that exists",
      );
    const reading = { ...readingOptions(settings.corpus), ...(await countTokensBy(options.tokenizer)) };
    if (options.lance || (await isLancePlace(out))) {
      requireForLance(options, args.length > 0);
      return await indexIntoLance(args, { uri: out, settings, reading, model: dense }, io);
    }
    const job = { out, set: options.set, settings, reading, memory: options.memory };
    await removeRests(out);
    const isDone = dense !== undefined && (await exists(out));
    if (args.length > 0 && !isDone) await requireNewPath(out, "choose another folder or remove it");
    if (args.length > 0 && !isDone && dense !== undefined) await requireEncoder(dense, settings, io);
    const work = isDone ? requireSameIndex : indexPassages;
    const built = args.length > 0 ? await work(args, job, io) : {};
    const vectors = await vectorsFor(options, settings, io);
    const index = await openIndex(out, { storage: "disk" });
    const { identity } = index;
    const { count } = index.parts.passages;
    await index.close();
    const seconds = (io.progress.now() - started) / 1000;
    io.print(`${count} passages are indexed in ${out} (${seconds.toFixed(1)} s)`);
    io.print(`next: ${commandLine("search", out, "a query")}`);
    const peakBytes = process.resourceUsage().maxRSS * 1024;
    const bytes = await folderBytes(out);
    const about = { index: out, passages: count, skipped: 0, ...built, seconds, peakBytes, bytes };
    return { json: { ...about, ...identity, ...(vectors && { dense: vectors }) } };
  },
});

/** Keys of `--set` that a LanceDB table has no use for. */
const folderKeys: readonly string[] = ["variant", "k1", "b", "fuzzy", "dense"];

function keyOf(word: string): string {
  return word.split(/[.=]/, 1)[0] as string;
}

/** What LanceDB decides by itself, which would be ignored, is refused. */
function requireForLance({ approximate, memory, set }: Flags, hasCorpus: boolean): void {
  if (!hasCorpus)
    throw new UsageError("index: name a corpus; a LanceDB table gets its vectors when it is built");
  if (approximate || memory !== undefined)
    throw new UsageError(
      `index: ${approximate ? "--approximate" : "--memory"} is for index folders; LanceDB decides that by itself`,
    );
  const other = set.map(keyOf).find((key) => folderKeys.includes(key));
  if (other !== undefined)
    throw new UsageError(
      `index: --set ${other} is for index folders; LanceDB ranks words with k1 1.2 and b 0.75 and stores vectors in its own way`,
    );
}

/** The vectors that are asked for, or a graph over those that are there. */
async function vectorsFor(
  { out, dense, approximate, set }: Flags,
  settings: IndexSettings,
  io: CommandIo,
): Promise<Vectors | undefined> {
  const hasVectors = await exists(denseFolder(out));
  if (hasVectors) await removeVectorRests(denseFolder(out));
  if (approximate && (dense === undefined || hasVectors)) {
    if (set.some((word) => word.startsWith("dense.")))
      throw new UsageError(`index: --set dense is about encoding, and ${out} has vectors already`);
    return await addGraphTo(out, { model: dense, settings }, io);
  }
  if (dense === undefined) return undefined;
  return await addVectors(out, { model: dense, approximate, settings }, io);
}

/** Options that would be ignored are refused. */
function requireUsed(
  { dense, approximate, set, format, encoding, strict, tokenizer, memory }: Flags,
  hasCorpus: boolean,
): void {
  const keys = set.map(keyOf);
  const vectorKeys = keys.filter((key) => key === "dense" || key === "encoder");
  const words = keys.filter((key) => key !== "dense" && key !== "encoder");
  if (dense === undefined && ((approximate && hasCorpus) || vectorKeys.length > 0))
    throw new UsageError(
      `index: ${vectorKeys.length > 0 ? `--set ${vectorKeys[0]}` : "--approximate"} is about vectors; name the encoder with --dense MODEL`,
    );
  const reading = { format, encoding, strict: strict || undefined, tokenizer, memory };
  const unused = Object.entries(reading).find(([, value]) => value !== undefined)?.[0];
  if (!hasCorpus && (unused !== undefined || words.length > 0))
    throw new UsageError(
      `index: ${unused === undefined ? `--set ${words[0]}` : `--${unused}`} is about reading a corpus, and none is named`,
    );
}

/** An index that is there may get vectors when it is of the corpus and the settings that were named. */
async function requireSameIndex(paths: readonly string[], job: Job, io: CommandIo): Promise<Built> {
  const { out, reading } = job;
  const index = await openIndex(out, { storage: "disk" });
  const { corpusHash, options } = index.parts;
  await index.close();
  requireSameSettings(job, options);
  const hasher = corpusHasher();
  const report = newCorpusReport();
  for await (const passage of readCorpora(paths, { ...reading, report })) {
    io.signal.throwIfAborted();
    hasher.add(passage);
  }
  if (hasher.digest() !== corpusHash)
    throw new FileError(`${out} exists already and is the index of another corpus; choose another folder`);
  for (const line of describeReport(report)) io.note(line);
  io.note(`${out} is the index of this corpus already; adding vectors`);
  return { skipped: skippedBy(report, job) };
}

/** What was set must be as the index has it: nothing of it would be used. */
function requireSameSettings({ out, set, settings }: Job, built: Bm25Options): void {
  const asked = settings.lexical;
  const keys = set.map(keyOf);
  const other = (Object.keys(asked) as (keyof Bm25Options)[]).find(
    (key) => keys.includes(key) && canonicalJson(asked[key]) !== canonicalJson(built[key]),
  );
  if (other === undefined) return;
  throw new FileError(
    `${out} exists already and was built with ${other}=${valueText(built[other])}; leave out --set ${other}, or choose another folder`,
  );
}

/** As it can be written behind `=`. */
function valueText(value: Bm25Options[keyof Bm25Options]): string {
  return typeof value === "object" ? canonicalJson(value) : String(value);
}

interface Built {
  readonly skipped: number;
}

interface Job {
  readonly out: string;
  /** As given, for what may have been left out. */
  readonly set: readonly string[];
  readonly settings: IndexSettings;
  readonly reading: ReadCorporaOptions;
  readonly memory: number | undefined;
}

async function indexPassages(paths: readonly string[], job: Job, io: CommandIo): Promise<Built> {
  const { out, settings, reading, memory } = job;
  const report = newCorpusReport();
  let progress: Progress | undefined;
  let total = 1;
  const passages = readCorpora(paths, {
    ...reading,
    report,
    onProgress: (read, all) => {
      total = megabytes(all);
      progress ??= startProgress({ label: "indexing", total, unit: "MB" }, io.progress);
      progress.update(Math.min(megabytes(read), total), `${report.passages} passages`);
    },
  });
  const built = await buildIndexFolder(passages, out, {
    options: settings.lexical,
    signal: io.signal,
    ...(memory !== undefined && { memoryBytes: memory * 2 ** 20 }),
    onProgress: (state) => {
      if (state.phase === "merging") progress?.update(total, `merging, ${state.terms} terms`);
    },
  });
  progress?.finish(`${built.passages} passages`);
  if (built.resumedPassages > 0)
    io.note(`went on behind ${built.resumedPassages} passages of an earlier start`);
  for (const line of describeReport(report)) io.note(line);
  return { skipped: skippedBy(report, job) };
}

function skippedBy(report: CorpusReport, { settings }: Job): number {
  const dropped = settings.corpus.dropDuplicates ? report.duplicatePassages : 0;
  return skippedCount(report) + report.skippedFiles + dropped;
}

/** Bytes of all files of an index, its vectors too. */
async function folderBytes(folder: string): Promise<number> {
  const names = await readdir(folder, { recursive: true });
  const sizes = await Promise.all(
    names.map(async (name) => {
      const about = await stat(join(folder, name));
      return about.isFile() ? about.size : 0;
    }),
  );
  return sizes.reduce((sum, size) => sum + size, 0);
}

const megabytes = (bytes: number): number => Math.max(1, Math.round(bytes / 1e6));
