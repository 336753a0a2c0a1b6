/**
 * A passage and its record: one object of JSON Lines, one row of a table. All usual dialects are read: the text in
 * `text`, `contents` (FlashRAG, Search-R1: the title, mostly in quotes, is its first line), `content` or `passage`;
 * the id in `id`, `_id` (BEIR), `docid` and others. Other keys are kept. Written is always `id`, `title`, `text`,
 * and `sourceSpan` for the place of origin, since a record's own `source` is often something else.
 */
import { DataFormatError } from "../errors.ts";
import { describeKeys, describeValue, type JsonRecord, nestedTooDeep } from "./formats/json-record.ts";
import type { Passage, PassageSource } from "./passage.ts";

/** Which keys hold the parts of a passage; the first one that a record has counts. */
export interface PassageKeys {
  readonly id: readonly string[];
  readonly title: readonly string[];
  readonly text: readonly string[];
}

export const passageKeys: PassageKeys = {
  id: ["id", "_id", "docid", "doc_id", "pid", "passage_id"],
  title: ["title"],
  text: ["text", "contents", "content", "passage"],
};

/** Why a record is no passage: it is not readable, or it says nothing. */
export interface RefusedRecord {
  readonly kind: "badLine" | "emptyPassage";
  readonly error: DataFormatError;
}

export interface RecordPlace {
  readonly path: string;
  readonly line: number | undefined;
  readonly keys: PassageKeys;
}

const SOURCE_KEY = "sourceSpan";

/** The fields of a passage as JSON, for who needs them in more than one place. */
export interface PassageFields {
  readonly id: string;
  readonly title: string;
  readonly text: string;
}

export function passageFields({ id, title, text }: Passage): PassageFields {
  return { id: JSON.stringify(id), title: JSON.stringify(title), text: JSON.stringify(text) };
}

/** A passage as one line of JSON, without the line end. */
export function passageLine(passage: Passage, fields: PassageFields = passageFields(passage)): string {
  const { id, title, text } = fields;
  const { source, extra } = passage;
  const known = `{"id":${id},"title":${title},"text":${text}`;
  if (source === undefined && extra === undefined) return `${known}}`;
  const more = JSON.stringify({ ...(source && { [SOURCE_KEY]: source }), ...extra }).slice(1);
  return more === "}" ? `${known}}` : `${known},${more}`;
}

/** The passage that a record holds, or what is wrong with it. */
export function passageOf(record: JsonRecord, path: string, line: number): Passage | DataFormatError {
  const passage = readRecord(record, { path, line, keys: passageKeys });
  return "error" in passage ? passage.error : passage;
}

/** As `passageOf`, with the keys to look at, and with the kind of what is wrong. */
export function readRecord(record: JsonRecord, place: RecordPlace): Passage | RefusedRecord {
  const { keys } = place;
  const idKey = keys.id.find((key) => idOf(record[key]) !== undefined);
  const id = idKey === undefined ? undefined : idOf(record[idKey]);
  if (id === undefined || idKey === undefined) {
    const came = keys.id.map((key) => record[key]).find((value) => value !== undefined);
    return refusal(place, "badLine", `expected ${quoted(keys.id[0])}, ${describeWrongId(came)}`);
  }
  const wrongTitle = keys.title.map((key) => record[key]).find((value) => !mayBeTitle(value));
  if (wrongTitle !== undefined)
    return refusal(
      place,
      "badLine",
      `expected ${quoted(keys.title[0])}, a text, got ${describeValue(wrongTitle)}`,
    );
  const body = bodyOf(record, keys);
  if (body === undefined || (body.title.trim() === "" && body.text.trim() === "")) {
    const value = keys.text.map((key) => record[key]).find((found) => found !== undefined && found !== null);
    const names = keys.text === passageKeys.text ? '"contents" or "text"' : quoted(keys.text[0]);
    const found = `got ${describeValue(value)} (keys: ${describeKeys(record)})`;
    const kind = body !== undefined || isBlank(value) ? "emptyPassage" : "badLine";
    return refusal(place, kind, `expected ${names}, a text that is not empty, ${found}`);
  }
  const passage: Passage = { id, title: body.title, text: body.text };
  const { titleKey, textKey } = body;
  // A million records pass here: most hold nothing else, and a spread costs more than all of the above.
  const areApart = idKey !== textKey && idKey !== titleKey && titleKey !== textKey;
  const known = titleKey === undefined ? 2 : 3;
  if (areApart && Object.keys(record).length === known) return passage;
  const more = others(record, [idKey, titleKey, textKey]);
  const deep = nestedTooDeep(more.extra);
  if (deep !== undefined) return refusal(place, "badLine", deep);
  return { ...passage, ...more };
}

function refusal({ path, line }: RecordPlace, kind: RefusedRecord["kind"], message: string): RefusedRecord {
  return { kind, error: new DataFormatError(path, line, message) };
}

/** The place of origin and the unknown keys of a record. */
function others(
  record: JsonRecord,
  known: readonly (string | undefined)[],
): Pick<Passage, "source" | "extra"> {
  const unknown = Object.keys(record).filter((key) => !known.includes(key));
  const source = sourceOf(record[SOURCE_KEY]);
  const kept = source === undefined ? unknown : unknown.filter((key) => key !== SOURCE_KEY);
  const extra = Object.fromEntries(kept.map((key) => [key, record[key]]));
  return { ...(source && { source }), ...(kept.length > 0 && { extra }) };
}

/** An id as text. Numbers are accepted up to 2^53, beyond which JSON loses digits and two ids would become one. */
export function idOf(value: unknown): string | undefined {
  if (typeof value === "number") return hasAllDigits(value) ? String(value) : undefined;
  return typeof value === "string" && value !== "" ? value : undefined;
}

/** What an id should be, and what came instead, for the end of a message. */
export function describeWrongId(value: unknown): string {
  const advice =
    typeof value === "number" ? "; numbers above 2^53 lose digits: put ids like this in quotes" : "";
  return `a text or a number, got ${describeValue(value)}${advice}`;
}

function hasAllDigits(value: number): boolean {
  return Number.isFinite(value) && Math.abs(value) <= Number.MAX_SAFE_INTEGER;
}

function sourceOf(value: unknown): PassageSource | undefined {
  if (value === null || typeof value !== "object") return undefined;
  const { document, start, end, page, ...others } = value as Record<string, unknown>;
  const isPlace = typeof document === "string" && isCount(start) && isCount(end);
  const isWhole = (page === undefined || isCount(page)) && Object.keys(others).length === 0;
  return isPlace && isWhole ? (value as PassageSource) : undefined;
}

function isCount(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

interface Body {
  readonly title: string;
  readonly text: string;
  readonly titleKey: string | undefined;
  readonly textKey: string;
}

/** Title and text; undefined when no key holds a text. */
function bodyOf(record: JsonRecord, keys: PassageKeys): Body | undefined {
  const textKey = keys.text.find((key) => typeof record[key] === "string");
  if (textKey === undefined) return undefined;
  const titleKey = keys.title.find((key) => record[key] !== undefined);
  const title = titleKey === undefined ? "" : (record[titleKey] ?? "");
  const parts = splitText(record[textKey] as string, { textKey, title: String(title) });
  return { title: parts.title, text: parts.text, titleKey, textKey };
}

function mayBeTitle(value: unknown): boolean {
  return value === undefined || value === null || typeof value === "string" || typeof value === "number";
}

/** Takes the title out of a text that starts with it. `content` does so only in quotes. */
function splitText(
  text: string,
  { textKey, title }: { readonly textKey: string; readonly title: string },
): { title: string; text: string } {
  const mayHoldTitle = textKey === "contents" || (textKey === "content" && text.startsWith('"'));
  if (!mayHoldTitle) return { title, text };
  const split = splitContents(text);
  if (title === "") return split;
  return split.title === title && split.text !== "" ? split : { title, text };
}

/**
 * Title and text of `contents`. One quote at each end of the title is taken off, since a title may itself hold
 * quotes. A single line is a title when it stands in quotes and a text otherwise.
 */
function splitContents(contents: string): { title: string; text: string } {
  const end = contents.indexOf("\n");
  const first = end < 0 ? contents : contents.slice(0, end);
  const isQuoted = first.length >= 2 && first.startsWith('"') && first.endsWith('"');
  if (end < 0 && !isQuoted) return { title: "", text: contents };
  return { title: isQuoted ? first.slice(1, -1) : first, text: end < 0 ? "" : contents.slice(end + 1) };
}

function isBlank(value: unknown): boolean {
  return typeof value === "string" && value.trim() === "";
}

function quoted(key: string | undefined): string {
  return JSON.stringify(key);
}
