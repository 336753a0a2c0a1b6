/** One file as one document: its bytes in memory, its text by the reader of its format. */
import { DataFormatError } from "../../errors.ts";
import type { CorpusFormat } from "../corpus-options.ts";
import { decodeWhole, type TextContext } from "./decode.ts";
import { stemOf } from "./detect.ts";
import type { DocumentText } from "./document.ts";
import { readDocx } from "./docx.ts";
import { encodingOfHtml, readHtml } from "./html.ts";
import { readMarkdown } from "./markdown.ts";
import { type OnBytes, openBytes } from "./open-bytes.ts";
import { readPdf } from "./pdf.ts";

/** The document in a file; its title is the name of the file when it has no other. Throws `FileError` and `DataFormatError`. */
export async function readDocument(
  context: TextContext,
  format: CorpusFormat,
  onBytes?: OnBytes,
): Promise<DocumentText> {
  const pieces: Uint8Array[] = [];
  for await (const piece of openBytes(context.path, onBytes)) pieces.push(piece);
  const document = await parseDocument(Buffer.concat(pieces), context, format);
  return { ...document, title: document.title || stemOf(context.path) };
}

async function parseDocument(
  bytes: Buffer,
  context: TextContext,
  format: CorpusFormat,
): Promise<DocumentText> {
  if (format === "pdf") return await readPdf(bytes, context.path);
  if (format === "docx") return await readDocx(bytes, context.path);
  if (format === "html") {
    const encoding = context.encoding ?? encodingOfHtml(bytes);
    return await readHtml(decodeWhole(bytes, { ...context, encoding }));
  }
  const text = decodeWhole(bytes, context);
  if (text.includes("\0"))
    throw new DataFormatError(
      context.path,
      undefined,
      "expected text, got NUL bytes: the file is binary, or UTF-16 without a mark (--encoding utf-16le)",
    );
  return format === "markdown" ? await readMarkdown(text) : { title: "", text: text.replace(/\r\n?/g, "\n") };
}
