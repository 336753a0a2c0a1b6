/** `index.json`, the table of contents of an index folder: version, options, corpus hash, counts and parts. */
import { readFile } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { z } from "zod";
import { FileError, RetrieverError } from "../errors.ts";
import { exists, fileError } from "../shared/files.ts";
import { BM25_VERSION } from "./lexical/bm25-index.ts";
import { recordedBm25OptionsSchema } from "./lexical/bm25-options.ts";
import { damaged, type Part, partSchema, writePart } from "./part-files.ts";

/** The file that makes a folder an index. */
export const INDEX_MANIFEST = "index.json";

const manifestSchema = z.strictObject({
  method: z.literal("bm25"),
  version: z.literal(BM25_VERSION),
  options: recordedBm25OptionsSchema,
  corpusHash: z.string(),
  counts: z.strictObject({ passages: z.int().min(1), terms: z.int().min(0), entries: z.int().min(0) }),
  parts: z.strictObject({
    /** The passages as JSON Lines, and where each line begins (64-bit floats, one more than lines). */
    passages: partSchema,
    passageStarts: partSchema,
    /** See `index-folder-ids.ts`. */
    ids: partSchema,
    /** The terms, sorted, a line each, and where each line begins (32 bits, one more than lines). */
    vocabulary: partSchema,
    vocabularyStarts: partSchema,
    /** Where the entries of each term begin (64-bit floats, one more than terms). */
    starts: partSchema,
    /** The least and the greatest impact of each term (32-bit floats). */
    bounds: partSchema,
    /** Positions of passages (32 bits) and impacts (32-bit floats), term after term. */
    postings: partSchema,
    impacts: partSchema,
  }),
});
export type Manifest = z.output<typeof manifestSchema>;

/** Where an index is while it is built: a hidden folder beside the one it becomes. */
export function buildFolderOf(folder: string): string {
  const target = resolve(folder);
  return join(dirname(target), `.${basename(target)}.building`);
}

/** Writes the manifest; returns its size. */
export function writeManifest(folder: string, manifest: Omit<Manifest, "method" | "version">): Part {
  const whole: Manifest = { method: "bm25", version: BM25_VERSION, ...manifest };
  return writePart(folder, INDEX_MANIFEST, [Buffer.from(`${JSON.stringify(whole, null, 2)}\n`)]);
}

/**
 * Reads the manifest. Throws `FileError` when it is missing or damaged, `RetrieverError` when it is of another
 * version of Forager.
 */
export async function readManifest(folder: string): Promise<Manifest> {
  const path = join(folder, INDEX_MANIFEST);
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (cause) {
    if (!(await exists(folder)) && (await exists(buildFolderOf(folder))))
      throw new FileError(
        `${folder} is not finished: its build was stopped or still runs; give the same forager index command again, which goes on from there`,
        { cause },
      );
    const isMissing = ["ENOENT", "ENOTDIR"].includes((cause as NodeJS.ErrnoException).code ?? "");
    if (isMissing && (await exists(folder)))
      throw new FileError(
        `cannot read the index ${folder}: it is no index, which holds ${INDEX_MANIFEST}; make one with forager index CORPUS --out INDEX`,
        { cause },
      );
    throw fileError(`cannot read the index ${folder} (${INDEX_MANIFEST})`, cause);
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new FileError(`${path} is damaged: it is not JSON; build the index again`, { cause });
  }
  const known = z.looseObject({ method: z.string(), version: z.number() }).safeParse(value);
  if (known.success && (known.data.method !== "bm25" || known.data.version !== BM25_VERSION))
    throw new RetrieverError(
      `${folder}: expected a bm25 index of version ${BM25_VERSION}, got ${known.data.method} of version ` +
        `${known.data.version}; build the index again`,
    );
  const manifest = manifestSchema.safeParse(value);
  if (!manifest.success) throw damaged(path, z.prettifyError(manifest.error));
  requireSizes(path, manifest.data);
  return manifest.data;
}

/** The sizes of the parts follow from the counts. */
function requireSizes(path: string, { counts, parts }: Manifest): void {
  const sizes = {
    passageStarts: 8 * (counts.passages + 1),
    vocabularyStarts: 4 * (counts.terms + 1),
    starts: 8 * (counts.terms + 1),
    bounds: 8 * counts.terms,
    postings: 4 * counts.entries,
    impacts: 4 * counts.entries,
  };
  for (const [name, bytes] of Object.entries(sizes)) {
    const part = parts[name as keyof typeof sizes];
    if (part.bytes !== bytes)
      throw damaged(path, `expected ${bytes} bytes in ${part.file} for its counts, got ${part.bytes}`);
  }
}
