/**
 * Passages out of what servers send for a document: an object with `id` and `contents` (or `title` and `text`, or
 * the other names of E4), or a bare text. A document without an id gets one made of its text, so that the same
 * document is the same passage in every answer.
 */
import type { Passage } from "../../corpus/passage.ts";
import { sha256 } from "../../shared/hash.ts";

type Fields = Readonly<Record<string, unknown>>;

/** Keys that hold the text of a document, the first that is there wins; `contents` may carry the title. */
const textKeys = ["contents", "text", "content", "body", "segment", "passage"] as const;
const idKeys = ["id", "_id", "docid", "doc_id"] as const;

export function isFields(value: unknown): value is Fields {
  return value !== null && typeof value === "object" && !Array.isArray(value);
}

/** The passage of a document as a server sends it, or `undefined` when it is none. `id` is taken when it has none. */
export function documentPassage(document: unknown, id?: string): Passage | undefined {
  if (typeof document === "string") {
    const inner = parseObject(document);
    if (inner !== undefined) return documentPassage(inner, id);
    return document.trim() === "" ? undefined : withId(splitContents(document), id);
  }
  if (!isFields(document)) return undefined;
  const textKey = textKeys.find((key) => typeof document[key] === "string");
  if (textKey === undefined) return undefined;
  const idKey = idKeys.find((key) => isId(document[key]));
  const title = typeof document.title === "string" ? document.title : undefined;
  const body = bodyOf(document, textKey, title);
  const isRepeated = textKey === "contents" && typeof document.text === "string" && title !== undefined;
  const known = new Set<string>([
    textKey,
    "title",
    ...(idKey ? [idKey] : []),
    ...(isRepeated ? ["text"] : []),
  ]);
  const extra = Object.fromEntries(Object.entries(document).filter(([key]) => !known.has(key)));
  const passage = withId(body, idKey === undefined ? id : String(document[idKey]));
  return Object.keys(extra).length === 0 ? passage : { ...passage, extra };
}

/** Search-R1's BM25 sends title and text beside contents, which repeat them. */
function bodyOf(document: Fields, textKey: (typeof textKeys)[number], title: string | undefined) {
  const text = document[textKey] as string;
  const mayHoldTitle = textKey === "contents" || /^"[^\n]*"\n/.test(text);
  if (title === undefined && mayHoldTitle) return splitContents(text);
  if (textKey !== "contents" || title === undefined) return { title: title ?? "", text };
  if (typeof document.text === "string") return { title, text: document.text };
  const split = splitContents(text);
  return { title, text: split.title === title ? split.text : text };
}

function withId(body: { readonly title: string; readonly text: string }, id: string | undefined): Passage {
  return { id: id ?? `text:${sha256(`${body.title}\n${body.text}`).slice(0, 16)}`, ...body };
}

function isId(value: unknown): boolean {
  return (typeof value === "string" && value !== "") || (typeof value === "number" && Number.isFinite(value));
}

function parseObject(text: string): Fields | undefined {
  if (!text.startsWith("{")) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return isFields(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** As corpora are read: the title, mostly in quotes, is the first line; a single line without quotes is a text. */
function splitContents(contents: string): { title: string; text: string } {
  const end = contents.indexOf("\n");
  const first = end < 0 ? contents : contents.slice(0, end);
  const isQuoted = first.length >= 2 && first.startsWith('"') && first.endsWith('"');
  if (end < 0 && !isQuoted) return { title: "", text: contents };
  return { title: isQuoted ? first.slice(1, -1) : first, text: end < 0 ? "" : contents.slice(end + 1) };
}

/** The `contents` of a passage as Search-R1 and FlashRAG write it: the title in quotes, a line end, the text. */
export function contentsOf({ title, text }: Pick<Passage, "title" | "text">): string {
  return title === "" ? text : `"${title}"\n${text}`;
}
