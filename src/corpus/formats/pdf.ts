/**
 * The text of PDF files, page by page, as pdf.js finds it. Scanned pages have none: such a file is refused, since an
 * empty passage would hide that it needs character recognition.
 */
import { DataFormatError } from "../../errors.ts";
import { type DocumentText, tidyText } from "./document.ts";

/** Title, text and page starts. Throws `DataFormatError` for a damaged, locked or textless file. */
export async function readPdf(bytes: Uint8Array, path: string): Promise<DocumentText> {
  const { getDocument } = await import("pdfjs-dist/legacy/build/pdf.mjs");
  // pdf.js takes the bytes over. Fonts are not drawn, and nothing of the file is run as code.
  const data = new Uint8Array(bytes);
  const task = getDocument({ data, verbosity: 0, isEvalSupported: false, disableFontFace: true });
  try {
    const file = await task.promise;
    const pages: string[] = [];
    for (let number = 1; number <= file.numPages; number++) {
      const page = await file.getPage(number);
      const { items } = await page.getTextContent();
      const pieces = items.map((item) => ("str" in item ? item.str + (item.hasEOL ? "\n" : "") : ""));
      pages.push(tidyText(pieces.join("")));
      page.cleanup();
    }
    if (pages.every((page) => page.trim() === ""))
      throw new DataFormatError(
        path,
        undefined,
        `expected text, got ${pages.length} pages without any; recognise the characters first (OCR)`,
      );
    const { info } = await file.getMetadata();
    return { title: titleOf(info), ...joinPages(pages) };
  } catch (cause) {
    throw cause instanceof DataFormatError ? cause : damage(path, cause);
  } finally {
    await task.destroy();
  }
}

/** Pages are apart by a blank line. */
function joinPages(pages: readonly string[]): { text: string; pageStarts: readonly number[] } {
  const pageStarts: number[] = [];
  let text = "";
  for (const page of pages) {
    if (pageStarts.length > 0) text += "\n\n";
    pageStarts.push(text.length);
    text += page;
  }
  return { text, pageStarts };
}

function titleOf(info: object): string {
  const title = (info as { Title?: unknown }).Title;
  return typeof title === "string" ? title.trim() : "";
}

function damage(path: string, cause: unknown): unknown {
  if (!(cause instanceof Error)) return cause;
  const isLocked = cause.name === "PasswordException";
  const came = isLocked
    ? "one that is locked with a password; save it without"
    : `a damaged file (${cause.message}); copy or download it again`;
  return new DataFormatError(path, undefined, `expected a PDF file, got ${came}`, { cause });
}
