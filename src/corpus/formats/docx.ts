/**
 * The text of Word documents (DOCX) through mammoth: its HTML is read as any other page, so that headings, lists and
 * tables come out alike. Pictures are left out; the old binary `.doc` is not read.
 */
import { DataFormatError } from "../../errors.ts";
import type { DocumentText } from "./document.ts";
import { readHtml } from "./html.ts";

/** Title (the first heading) and text. Throws `DataFormatError` for what is no DOCX file. */
export async function readDocx(bytes: Uint8Array, path: string): Promise<DocumentText> {
  const { default: mammoth } = await import("mammoth");
  const convertImage = mammoth.images.imgElement(() => Promise.resolve({ src: "" }));
  try {
    const { value } = await mammoth.convertToHtml({ buffer: Buffer.from(bytes) }, { convertImage });
    return await readHtml(value);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message.split(/\n| : /, 1)[0] : String(cause);
    throw new DataFormatError(
      path,
      undefined,
      `expected a Word document (DOCX), got a damaged or other file (${reason}); save it again as .docx`,
      { cause },
    );
  }
}
