/**
 * The journal of an unfinished build: its options and the segments that are complete, so that the next start goes on
 * after them. It is replaced in one step whenever a segment is durable; what is newer than the journal is lost.
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { RetrieverError } from "../errors.ts";
import { fileError, writeFileAtomic } from "../shared/files.ts";
import { canonicalJson } from "../shared/hash.ts";
import { segmentPartsSchema } from "./index-folder-segments.ts";
import { BM25_VERSION } from "./lexical/bm25-index.ts";
import { type Bm25Options, recordedBm25OptionsSchema } from "./lexical/bm25-options.ts";

const JOURNAL = "journal.json";

const journalSchema = z.strictObject({
  version: z.literal(BM25_VERSION),
  options: recordedBm25OptionsSchema,
  segments: z.array(segmentPartsSchema),
  /** Passages in the segments. */
  passages: z.int().min(0),
  /** Their lines in the file of passages. */
  passageBytes: z.int().min(0),
  /** SHA-256 of those lines. */
  passageHash: z.string(),
});
export type Journal = z.output<typeof journalSchema>;

export async function writeJournal(work: string, journal: Omit<Journal, "version">): Promise<void> {
  await writeFileAtomic(join(work, JOURNAL), `${JSON.stringify({ version: BM25_VERSION, ...journal })}\n`);
}

/**
 * The journal in `work`, or undefined when there is none. Throws `RetrieverError` when it is of a build with other
 * options or by another version, or damaged: then a person decides.
 */
export async function readJournal(work: string, options: Bm25Options): Promise<Journal | undefined> {
  let text: string;
  try {
    text = await readFile(join(work, JOURNAL), "utf8");
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw fileError(`cannot read ${join(work, JOURNAL)}`, cause);
  }
  const journal = parse(text);
  if (journal === undefined)
    throw new RetrieverError(
      `${work} holds an unfinished build that cannot be continued (by another version of Forager, or damaged); ` +
        "remove that folder to start again",
    );
  if (canonicalJson(journal.options) !== canonicalJson(options))
    throw new RetrieverError(
      `${work} holds an unfinished build with other options: expected ${canonicalJson(options)}, ` +
        `got ${canonicalJson(journal.options)}; use those options to continue it, or remove that folder to start again`,
    );
  return journal;
}

function parse(text: string): Journal | undefined {
  try {
    return journalSchema.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}
