/**
 * Corpora on disk: JSON Lines in two dialects, `{"id","contents"}` (FlashRAG, Search-R1: the title, mostly in
 * quotes, is the first line of the contents) and `{"id","title","text"}`. Written is always the second, since it
 * can hold every passage. Reading streams; only ids are kept, to find repeated ones.
 */
import { DataFormatError } from "../errors.ts";
import { writeFileAtomic } from "../shared/files.ts";
import { describeValue, type JsonRecord, readJsonLines } from "./json-lines.ts";
import type { Passage } from "./passage.ts";

export interface ReadCorpusOptions {
  /** Called with what is wrong with a line, which is then skipped; without it the first bad line ends the reading. */
  readonly onSkip?: (error: DataFormatError) => void;
}

/**
 * The passages of a JSONL file in order. Throws `DataFormatError` (file, line) for a line that is no passage or
 * repeats an id, and for a file without passages; `FileError` when it cannot be read.
 */
export async function* readCorpus(path: string, options: ReadCorpusOptions = {}): AsyncGenerator<Passage> {
  const lineOf = new Map<string, number>();
  for await (const entry of readJsonLines(path)) {
    const passage = "error" in entry ? entry.error : passageOf(entry.record, path, entry.line);
    const result =
      passage instanceof DataFormatError
        ? passage
        : rejectRepeated(passage, lineOf, { path, line: entry.line });
    if (!(result instanceof DataFormatError)) yield result;
    else if (options.onSkip === undefined) throw result;
    else options.onSkip(result);
  }
  if (lineOf.size === 0)
    throw new DataFormatError(
      path,
      undefined,
      'expected passages, one JSON object a line such as {"id":"1","title":"…","text":"…"}, got none',
    );
}

/** Writes a corpus so that `readCorpus` gives back equal passages. Throws `FileError`. */
export async function writeCorpus(path: string, passages: Iterable<Passage>): Promise<void> {
  const chunks: Buffer[] = [];
  for (const passage of passages) chunks.push(Buffer.from(`${passageLine(passage)}\n`));
  await writeFileAtomic(path, Buffer.concat(chunks));
}

/** A passage as one line of JSON, without the line end. */
export function passageLine({ id, title, text, extra }: Passage): string {
  return JSON.stringify({ id, title, text, ...extra });
}

/** The passage that a record holds, or what is wrong with it. */
export function passageOf(record: JsonRecord, path: string, line: number): Passage | DataFormatError {
  const wrong = (message: string): DataFormatError => new DataFormatError(path, line, message);
  const id = idOf(record.id);
  if (id === undefined) return wrong(`expected "id", a text or a number, got ${describeValue(record.id)}`);
  const body = bodyOf(record);
  if (body === undefined)
    return wrong(
      `expected "contents" or "text", a text that is not empty, got ${describeValue(record.contents ?? record.text)} ` +
        `(keys: ${Object.keys(record).join(", ")})`,
    );
  const { title, text, rest } = body;
  return { id, title, text, ...(Object.keys(rest).length > 0 && { extra: rest }) };
}

/** An id as text; numbers are accepted. */
export function idOf(value: unknown): string | undefined {
  if (typeof value === "number" && Number.isFinite(value)) return String(value);
  return typeof value === "string" && value !== "" ? value : undefined;
}

function rejectRepeated(
  passage: Passage,
  lineOf: Map<string, number>,
  { path, line }: { readonly path: string; readonly line: number },
): Passage | DataFormatError {
  const first = lineOf.get(passage.id);
  if (first !== undefined)
    return new DataFormatError(
      path,
      line,
      `expected ids without repeats, got ${JSON.stringify(passage.id)} of line ${first} again`,
    );
  lineOf.set(passage.id, line);
  return passage;
}

interface Body {
  readonly title: string;
  readonly text: string;
  /** The other keys. */
  readonly rest: JsonRecord;
}

function bodyOf({ id: _id, ...record }: JsonRecord): Body | undefined {
  const hasTitle = record.title === undefined || typeof record.title === "string";
  if (typeof record.text === "string" && hasTitle) {
    const { title = "", text, ...rest } = record as { title?: string; text: string };
    return title === "" && text.trim() === "" ? undefined : { title, text, rest };
  }
  if (typeof record.contents !== "string" || record.contents.trim() === "") return undefined;
  const { contents, ...rest } = record;
  return { ...splitContents(record.contents), rest };
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
