/**
 * A passage as the JSON of a document: `id`, `contents` (title in quotes, line end, text, as in the corpora of
 * FlashRAG and Search-R1), `title`, `text`, `url` (of the corpus, or else the id, for clients that open what they
 * found by `/access`), and the corpus's own further keys. Made by joining pieces that are escaped once, which
 * measured twice as fast as `JSON.stringify` of the object; the bytes are the same.
 */
import type { Passage } from "../corpus/passage.ts";
import type { ScoredPassage } from "../retrieval/retriever.ts";
import { invalid } from "./fields.ts";

const ownKeys: ReadonlySet<string> = new Set(["id", "contents", "title", "text", "url"]);

/** Title in quotes, line end, text. */
export function contentsOf({ title, text }: Passage): string {
  return `"${title}"\n${text}`;
}

/** Where a client may open a passage: the corpus's `url`, or else the id. */
export function urlOf({ id, extra }: Passage): string {
  return typeof extra?.url === "string" && extra.url !== "" ? extra.url : id;
}

export function documentJson(passage: Passage): string {
  const title = JSON.stringify(passage.title);
  const text = JSON.stringify(passage.text);
  const contents = `"\\"${title.slice(1, -1)}\\"\\n${text.slice(1, -1)}"`;
  const known = `{"id":${JSON.stringify(passage.id)},"contents":${contents},"title":${title},"text":${text}`;
  return `${known},"url":${JSON.stringify(urlOf(passage))}${extraJson(passage)}}`;
}

function extraJson({ extra }: Passage): string {
  if (extra === undefined) return "";
  let json = "";
  for (const [key, value] of Object.entries(extra))
    if (!ownKeys.has(key) && value !== undefined) json += `,${JSON.stringify(key)}:${JSON.stringify(value)}`;
  return json;
}

/** JSON has no infinities; such a score is null. */
export function scoreJson(score: number): string {
  return Number.isFinite(score) ? String(score) : "null";
}

/** How one found passage is written. */
export type WriteFound = (found: ScoredPassage) => string;

/** `{"document": {...}, "score": …}`. */
export const scoredDocument: WriteFound = ({ passage, score }) =>
  `{"document":${documentJson(passage)},"score":${scoreJson(score)}}`;

export const plainDocument: WriteFound = ({ passage }) => documentJson(passage);

/**
 * A list of lists, one for each query. Throws `HttpError` (422) once the answer is longer than `most` characters:
 * only then is it known how long the passages are.
 */
export function lists(
  results: readonly (readonly ScoredPassage[])[],
  write: WriteFound,
  most: number,
): string {
  let json = "[";
  for (const [index, found] of results.entries()) {
    json += index === 0 ? "[" : ",[";
    json += list(found, write);
    json += "]";
    if (json.length > most)
      throw invalid(
        `an answer of at most ${most} characters`,
        `more than that after ${index + 1} of ${results.length} queries`,
        "ask for fewer passages or send several calls",
      );
  }
  return `${json}]`;
}

/** Found passages with commas between them, without brackets. */
export function list(found: readonly ScoredPassage[], write: WriteFound): string {
  let json = "";
  for (const [rank, entry] of found.entries()) json += rank === 0 ? write(entry) : `,${write(entry)}`;
  return json;
}
