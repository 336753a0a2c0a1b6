/** Which format a file has: by its name, and where that says nothing, or only JSON, by its first bytes. */
import { basename } from "node:path";
import { DataFormatError } from "../../errors.ts";
import type { CorpusFormat } from "../corpus-options.ts";
import { encodingOfMark } from "./decode.ts";
import { compressionOf, openBytes, readHead } from "./open-bytes.ts";

const endings: Readonly<Record<string, CorpusFormat>> = {
  jsonl: "jsonl",
  ndjson: "jsonl",
  json: "json",
  csv: "csv",
  tsv: "tsv",
  tab: "tsv",
  parquet: "parquet",
  md: "markdown",
  markdown: "markdown",
  mdx: "markdown",
  html: "html",
  htm: "html",
  xhtml: "html",
  txt: "text",
  text: "text",
  pdf: "pdf",
  docx: "docx",
  xml: "wikipedia",
};

const documents: readonly CorpusFormat[] = ["markdown", "html", "text", "pdf", "docx"];

/** Whether a file of the format is one document, rather than many records. */
export function isDocumentFormat(format: CorpusFormat): boolean {
  return documents.includes(format);
}

/** The name without its folder and without the ending of a compression. */
function plainName(path: string): string {
  return basename(path).replace(/\.(?:gz|gzip|zst|zstd|bz2)$/i, "");
}

/** The format that the name of a file says; undefined for an unknown or missing ending. */
export function formatOfName(path: string): CorpusFormat | undefined {
  const ending = /\.([^.]+)$/.exec(plainName(path))?.[1]?.toLowerCase();
  return ending === undefined ? undefined : endings[ending];
}

/** The name of a document without its endings, which is its title when it has no other. */
export function stemOf(path: string): string {
  return plainName(path).replace(/(?<=.)\.[^.]+$/, "");
}

/** The format of a file. Throws `FileError`, and `DataFormatError` when neither name nor content tells it. */
export async function detectFormat(path: string): Promise<CorpusFormat> {
  const named = formatOfName(path);
  const isCertain = named !== undefined && named !== "json" && named !== "jsonl" && named !== "wikipedia";
  if (isCertain) return named;
  const head = await headOf(path);
  const found = formatOfHead(head);
  if (found === "wikipedia" && named === undefined) return found;
  if (named === "wikipedia") {
    if (found === "wikipedia") return found;
    throw unknown(path, "an XML file that is no Wikipedia dump");
  }
  if (found === "json" || found === "jsonl" || found === "parquet") return found;
  if (named !== undefined) return named;
  if (found !== undefined) return found;
  if (isArchive(head))
    throw new DataFormatError(
      path,
      undefined,
      "expected a corpus, got an archive of files; unpack it and name its folder",
    );
  throw unknown(path, head.length === 0 ? "an empty file" : "a file whose name and content do not tell");
}

function unknown(path: string, came: string): DataFormatError {
  return new DataFormatError(
    path,
    undefined,
    `expected a corpus, got ${came}; say what it is (--format jsonl, csv, tsv, parquet, markdown, html, text, pdf, docx or wikipedia)`,
  );
}

/** A tar archive, or a zip archive that is no Word document. */
function isArchive(head: Uint8Array): boolean {
  const bytes = Buffer.from(head);
  return bytes.toString("latin1", 257, 262) === "ustar" || bytes.toString("latin1", 0, 4) === "PK\x03\x04";
}

const headLength = 4096;

/** The start of a file after decompression. */
async function headOf(path: string): Promise<Uint8Array> {
  const raw = await readHead(path, headLength);
  if (compressionOf(raw) === undefined) return raw;
  for await (const piece of openBytes(path)) return piece.subarray(0, headLength);
  return new Uint8Array(0);
}

function formatOfHead(head: Uint8Array): CorpusFormat | undefined {
  const bytes = Buffer.from(head);
  if (bytes.subarray(0, 4).toString("latin1") === "PAR1") return "parquet";
  if (bytes.subarray(0, 5).toString("latin1") === "%PDF-") return "pdf";
  if (bytes.subarray(0, 4).equals(Buffer.from("PK\x03\x04")) && bytes.includes("word/")) return "docx";
  const text = new TextDecoder(encodingOfMark(head) ?? "utf-8").decode(head).trimStart();
  if (/^(?:<\?xml[^>]*>\s*)?<mediawiki[\s>]/.test(text)) return "wikipedia";
  if (/^<(?:!doctype html|html)[\s>]/i.test(text)) return "html";
  if (/^\[\s*(?:\{|$)/.test(text)) return "json";
  if (!text.startsWith("{")) return undefined;
  // An object that goes on after its first line is written over several; so is one that is longer than this head.
  const first = text.slice(0, text.search(/[\r\n]|$/));
  if (first.length === text.length) return "jsonl";
  return /^\{\s*(?:"(?:[^"\\]|\\.)*"\s*:.*)?$/.test(first) && !isObject(first) && !/\}\s*$/.test(first)
    ? "json"
    : "jsonl";
}

function isObject(text: string): boolean {
  try {
    return typeof JSON.parse(text) === "object";
  } catch {
    return false;
  }
}
