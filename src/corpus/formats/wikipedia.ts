/**
 * Wikipedia dumps (`pages-articles.xml`): the articles in order, their wiki text reduced to plain text. Redirects,
 * pages of other namespaces and empty pages are left out. Templates that need the wiki to run are dropped, so facts
 * that stand in infoboxes only are not in the text.
 */
import { DataFormatError } from "../../errors.ts";
import { decodeText, type TextContext } from "./decode.ts";
import { type DocumentText, tidyText } from "./document.ts";
import type { ByteSource } from "./open-bytes.ts";

/** An article with the line of the dump where its page starts, or why a page could not be read. */
export type ArticleLine = { readonly line: number } & (
  | { readonly id: string; readonly document: DocumentText }
  | { readonly error: DataFormatError }
);

/** The articles of a dump. Throws `DataFormatError` when the XML is damaged or cut short. */
export async function* wikipediaArticles(
  bytes: ByteSource,
  context: TextContext,
): AsyncGenerator<ArticleLine> {
  const { default: wtf } = await import("wtf_wikipedia");
  for await (const page of wikiPages(bytes, context)) {
    if (page.namespace !== "0" || page.isRedirect || page.text.trim() === "") continue;
    try {
      const article = wtf(page.text, { title: page.title });
      const text = tidyText(article.text());
      if (article.isRedirect() || text.trim() === "") continue;
      yield { line: page.line, id: page.id, document: { title: page.title, text } };
    } catch (cause) {
      const reason = cause instanceof Error ? cause.message : String(cause);
      const message = `expected wiki text in the page ${JSON.stringify(page.title)}, which could not be read (${reason})`;
      yield { line: page.line, error: new DataFormatError(context.path, page.line, message, { cause }) };
    }
  }
}

interface WikiPage {
  readonly line: number;
  title: string;
  id: string;
  namespace: string;
  isRedirect: boolean;
  text: string;
}

/** Elements whose text is kept, by their path below `page`. */
const fields: Readonly<Record<string, "title" | "id" | "namespace" | "text">> = {
  "page/title": "title",
  "page/id": "id",
  "page/ns": "namespace",
  "page/revision/text": "text",
};

async function* wikiPages(bytes: ByteSource, context: TextContext): AsyncGenerator<WikiPage> {
  const { SaxesParser } = await import("saxes");
  const parser = new SaxesParser({ position: true });
  const done: WikiPage[] = [];
  let page: WikiPage | undefined;
  let trail: string[] = [];
  parser.on("opentag", ({ name }) => {
    if (name === "page") {
      page = { line: parser.line, title: "", id: "", namespace: "0", isRedirect: false, text: "" };
      trail = [];
    }
    trail.push(name);
    if (page && trail.join("/") === "page/redirect") page.isRedirect = true;
  });
  parser.on("text", (text) => {
    const field = page && fields[trail.join("/")];
    if (page && field) page[field] = field === "namespace" ? text : page[field] + text;
  });
  parser.on("closetag", ({ name }) => {
    trail.pop();
    if (name !== "page" || page === undefined) return;
    done.push(page);
    page = undefined;
  });
  parser.on("error", (cause) => {
    throw xmlError(cause, context.path, parser.line);
  });
  for await (const text of decodeText(bytes, context)) {
    parser.write(text);
    yield* done.splice(0);
  }
  parser.close();
  yield* done;
}

function xmlError(cause: Error, path: string, line: number): DataFormatError {
  const isShort = /unclosed tag|document must contain|unexpected end/i.test(cause.message);
  const came = isShort ? "a file that is cut short" : cause.message.replace(/^\d+:\d+: /, "");
  return new DataFormatError(
    path,
    line,
    `expected the XML of a Wikipedia dump, got ${came}; copy or download it again`,
    { cause },
  );
}
