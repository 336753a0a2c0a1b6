/**
 * A passage as the JSON of a document: `id`, `contents` (title in quotes, line end, text, as in the corpora of
 * FlashRAG and Search-R1), `title`, `text`, `url` (of the corpus, or else the id, for clients that open what they
 * found by `/access`), `source` where a passage was cut from a document, and the corpus's own further keys.
 */
import type { Passage } from "../corpus/passage.ts";

/** Title in quotes, line end, text. */
export function contentsOf({ title, text }: Passage): string {
  return `"${title}"\n${text}`;
}

/** Where a client may open a passage: the corpus's `url`, or else the id. */
export function urlOf({ id, extra }: Passage): string {
  return typeof extra?.url === "string" && extra.url !== "" ? extra.url : id;
}

export function documentJson(passage: Passage): string {
  const { id, title, text, source, extra } = passage;
  const own = { id, contents: contentsOf(passage), title, text, url: urlOf(passage) };
  return JSON.stringify({ ...own, ...(source !== undefined && { source }), ...extra, ...own });
}

/** JSON has no infinities; such a score is null. */
export function scoreJson(score: number): string {
  return Number.isFinite(score) ? String(score) : "null";
}
