/**
 * From the paths a user gave to the files that are read. A folder is a BEIR data set when it holds `corpus.jsonl`, an
 * index when it holds the files of one; else a folder of documents; else, without any document, a folder of parts that hold records. A README, a license and
 * the like beside parts describe them and are no documents. Files come sorted by path. Hidden files are passed over; links that leave the folder are refused.
 */
import { type Dirent, existsSync } from "node:fs";
import { readdir, realpath, stat } from "node:fs/promises";
import { basename, dirname, join, relative, resolve, sep } from "node:path";
import { DataFormatError } from "../../errors.ts";
import { fileError } from "../../shared/files.ts";
import type { CorpusFormat } from "../corpus-options.ts";
import { formatOfName, isDocumentFormat } from "./detect.ts";

/** A file to read. */
export interface CorpusFile {
  readonly path: string;
  /** Id of the file as a document: its path in the folder, with `/`, or its name; see `namesOf`. */
  readonly id: string;
  /** As its name says; undefined: by its content. */
  readonly format: CorpusFormat | undefined;
  /** It was found in a folder, so that a damaged document is skipped and not the end. */
  readonly isFound: boolean;
  readonly bytes: number;
}

/** Files in order, and what of a folder is not read. */
export interface FoundFiles {
  readonly files: readonly CorpusFile[];
  readonly skipped: readonly DataFormatError[];
}

const beirNames = ["corpus.jsonl", "corpus.jsonl.gz", "corpus.jsonl.zst", "corpus.jsonl.bz2"];
/** What an index folder holds beside its passages (`retrieval/index-folder-write.ts`). */
const indexNames = ["index.json", "passages.jsonl", "postings.u32"];

/** The files of the paths in order; `format` picks among those of a folder. Throws `FileError` for a path that is missing. */
export async function findFiles(paths: readonly string[], format?: CorpusFormat): Promise<FoundFiles> {
  const files: CorpusFile[] = [];
  const skipped: DataFormatError[] = [];
  const names = namesOf(paths);
  for (const [i, path] of paths.entries()) {
    const name = names[i] as string;
    const { isFolder, bytes } = await describePath(path);
    if (!isFolder) {
      files.push({ path, id: name, format, isFound: false, bytes });
      continue;
    }
    const found = await filesOfFolder(path, format);
    // Two folders may hold files of the same name.
    const prefix = paths.length > 1 ? `${name}/` : "";
    files.push(...found.files.map((file) => ({ ...file, id: prefix + file.id })));
    skipped.push(...found.skipped);
  }
  return { files, skipped };
}

/**
 * What each path is called in ids: its last part; for paths that share that, what lies below the folder that holds them
 * all, with `/`, so that no id depends on where the corpus lies.
 */
function namesOf(paths: readonly string[]): string[] {
  const whole = paths.map((path) => resolve(path));
  return whole.map((path) => {
    const twins = whole.filter((other) => basename(other) === basename(path));
    let shared = dirname(path);
    while (!twins.every((twin) => isBelow(twin, shared)) && shared !== dirname(shared))
      shared = dirname(shared);
    return relative(shared, path).split(sep).join("/");
  });
}

function isBelow(path: string, folder: string): boolean {
  return path.startsWith(folder.endsWith(sep) ? folder : folder + sep);
}

async function describePath(path: string): Promise<{ isFolder: boolean; bytes: number }> {
  try {
    const found = await stat(path);
    return { isFolder: found.isDirectory(), bytes: found.size };
  } catch (cause) {
    throw fileError(`cannot read ${path}`, cause);
  }
}

/** The one file of a folder that is its corpus: of a BEIR data set, or of an index that is made anew from its passages. */
function wholeCorpusOf(folder: string): string | undefined {
  const beir = beirNames.map((name) => join(folder, name)).find((path) => existsSync(path));
  const isIndex = indexNames.every((name) => existsSync(join(folder, name)));
  return beir ?? (isIndex ? join(folder, "passages.jsonl") : undefined);
}

async function filesOfFolder(folder: string, format?: CorpusFormat): Promise<FoundFiles> {
  const whole = wholeCorpusOf(folder);
  if (whole !== undefined && (format === undefined || format === "jsonl")) {
    const { bytes } = await describePath(whole);
    return { files: [{ path: whole, id: basename(whole), format, isFound: false, bytes }], skipped: [] };
  }
  const walk: Walk = { root: await realpath(folder), seen: new Set(), all: [], refused: [] };
  await walkFolder(folder, "", walk);
  const named = walk.all.map((file) => ({ ...file, format: formatOfName(file.path) }));
  const isDocument = (file: CorpusFile) => file.format !== undefined && isDocumentFormat(file.format);
  const parts = partFormats.find((formats) => named.some((file) => hasFormat(file, formats)));
  const hasDocuments = named.some((file) => isDocument(file) && !(parts && describesData(file)));
  const wanted = (file: CorpusFile): boolean => {
    if (format !== undefined) return file.format === format;
    return hasDocuments ? isDocument(file) : hasFormat(file, parts ?? []);
  };
  const unread = named.filter((file) => !wanted(file));
  if (unread.length === named.length && walk.refused.length === 0)
    throw new DataFormatError(
      folder,
      undefined,
      `expected a folder with corpus.jsonl, ${format ?? "Markdown, HTML, text, PDF, DOCX, JSONL, Parquet, CSV, TSV or JSON"} files, got ${describeFiles(named)}; name the files themselves, or say what they are (--format)`,
    );
  return {
    files: named.filter(wanted),
    skipped: [
      ...walk.refused,
      ...unread.map((file) => notWanted(file, hasDocuments ? "a document" : "records")),
    ],
  };
}

/** Formats of records; the first that a folder has are its parts. Tables and JSON beside the others are mostly statistics and settings. */
const partFormats: readonly (readonly CorpusFormat[])[] = [["jsonl", "parquet"], ["csv", "tsv"], ["json"]];

function hasFormat({ format }: CorpusFile, formats: readonly CorpusFormat[]): boolean {
  return format !== undefined && formats.includes(format);
}

/** Whether the file is about the data beside it, by its name: README.md, LICENSE-MIT.txt, dataset_card.md. */
function describesData({ path }: CorpusFile): boolean {
  return /^(?:readme|licen[sc]es?|changelog|(?:data|dataset)[-_ ]?card|datasheet)(?![a-z])/i.test(
    basename(path),
  );
}

function describeFiles(files: readonly CorpusFile[]): string {
  if (files.length === 0) return "no files";
  const names = files.slice(0, 3).map(({ id }) => id);
  return `${files.length} other files (${names.join(", ")}${files.length > 3 ? ", …" : ""})`;
}

function notWanted({ path }: CorpusFile, expected: string): DataFormatError {
  return new DataFormatError(
    path,
    undefined,
    `expected ${expected}, got a file of another kind; it is not read`,
  );
}

interface Walk {
  /** Real path of the folder that was given. */
  readonly root: string;
  /** Real paths of folders, since links inside can lead in circles. */
  readonly seen: Set<string>;
  readonly all: CorpusFile[];
  readonly refused: DataFormatError[];
}

async function walkFolder(folder: string, id: string, walk: Walk): Promise<void> {
  const real = await realpath(folder);
  if (walk.seen.has(real)) return;
  walk.seen.add(real);
  let entries: Dirent[];
  try {
    entries = await readdir(folder, { withFileTypes: true });
  } catch (cause) {
    throw fileError(`cannot read ${folder}`, cause);
  }
  entries.sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
  for (const entry of entries) {
    if (entry.name.startsWith(".")) continue;
    const path = join(folder, entry.name);
    if (entry.isSymbolicLink() && !(await staysInside(path, walk))) continue;
    const inner = id === "" ? entry.name : `${id}/${entry.name}`;
    const found = await stat(path);
    if (found.isDirectory()) await walkFolder(path, inner, walk);
    else if (found.isFile())
      walk.all.push({ path, id: inner, format: undefined, isFound: true, bytes: found.size });
    else
      walk.refused.push(
        new DataFormatError(path, undefined, "expected a file, got a pipe or a device; it is not read"),
      );
  }
}

async function staysInside(path: string, { root, refused }: Walk): Promise<boolean> {
  const target = await realpath(path).catch(() => undefined);
  if (target === root || target?.startsWith(root + sep)) return true;
  const came = target === undefined ? "one that leads nowhere" : "one that leaves it";
  refused.push(
    new DataFormatError(
      path,
      undefined,
      `expected a link to a place inside the folder, got ${came}; it is not read`,
    ),
  );
  return false;
}
