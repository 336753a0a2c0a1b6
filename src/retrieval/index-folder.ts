/**
 * An index on disk: a folder with the passages and everything a search needs, so that the folder can be moved,
 * and the corpus file removed. `index.json` names version, options, corpus hash and the SHA-256 of each part.
 * A folder appears whole or not at all, and is never changed; opening it checks every part.
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import type { Passage } from "../corpus/passage.ts";
import { passageLine, passageOf } from "../corpus/read-corpus.ts";
import { FileError, RetrieverError } from "../errors.ts";
import { createFolderAtomic, fileError } from "../shared/files.ts";
import { BM25_VERSION, Bm25Index, bm25OptionsSchema } from "./lexical/bm25-index.ts";
import { bytesOf, linePieces, partSchema, readPart, writePart } from "./part-files.ts";
import type { PassageStore } from "./passage-store.ts";

const MANIFEST = "index.json";

const manifestSchema = z.strictObject({
  method: z.literal("bm25"),
  version: z.literal(BM25_VERSION),
  options: bm25OptionsSchema,
  corpusHash: z.string(),
  counts: z.strictObject({ passages: z.int().min(1), terms: z.int().min(0), entries: z.int().min(0) }),
  parts: z.strictObject({
    passages: partSchema,
    vocabulary: partSchema,
    starts: partSchema,
    postings: partSchema,
    impacts: partSchema,
  }),
});
type Manifest = z.output<typeof manifestSchema>;

/** Writes the index into the new folder `folder`. Throws `FileError`, also when `folder` exists. */
export async function saveIndex(index: Bm25Index, folder: string): Promise<void> {
  const { options, corpusHash, passages, vocabulary, starts, postings, impacts } = index.parts;
  await createFolderAtomic(folder, async (target) => {
    const parts = {
      passages: await writePart(target, "passages.jsonl", linePieces(passageLines(passages))),
      vocabulary: await writePart(target, "vocabulary.txt", linePieces(vocabulary)),
      starts: await writePart(target, "starts.u32", [bytesOf(starts)]),
      postings: await writePart(target, "postings.u32", [bytesOf(postings)]),
      impacts: await writePart(target, "impacts.f32", [bytesOf(impacts)]),
    };
    const counts = { passages: passages.count, terms: vocabulary.length, entries: postings.length };
    const manifest: Manifest = { method: "bm25", version: BM25_VERSION, options, corpusHash, counts, parts };
    await writePart(target, MANIFEST, [Buffer.from(`${JSON.stringify(manifest, null, 2)}\n`)]);
  });
}

export interface OpenIndexOptions {
  /** Refuse an index of another corpus than this one. */
  readonly corpusHash?: string;
}

/**
 * Opens an index folder. Throws `FileError` when it is missing or damaged, and `RetrieverError` when another
 * version of Forager built it or it belongs to another corpus; both say to build it again.
 */
export async function openIndex(folder: string, expected: OpenIndexOptions = {}): Promise<Bm25Index> {
  const { options, corpusHash, counts, parts } = await readManifest(folder);
  if (expected.corpusHash !== undefined && expected.corpusHash !== corpusHash)
    throw new RetrieverError(
      `${folder} is the index of another corpus: expected corpus hash ${expected.corpusHash.slice(0, 12)}…, ` +
        `got ${corpusHash.slice(0, 12)}…; build the index again from the corpus in use`,
    );
  return new Bm25Index({
    options,
    corpusHash,
    passages: storedPassages(
      await readPart(folder, parts.passages),
      join(folder, parts.passages.file),
      counts.passages,
    ),
    vocabulary: textLines(await readPart(folder, parts.vocabulary)),
    starts: new Uint32Array(await readPart(folder, parts.starts)),
    postings: new Uint32Array(await readPart(folder, parts.postings)),
    impacts: new Float32Array(await readPart(folder, parts.impacts)),
  });
}

async function readManifest(folder: string): Promise<Manifest> {
  const path = join(folder, MANIFEST);
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (cause) {
    throw fileError(`cannot read the index ${folder} (${MANIFEST})`, cause);
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
  if (manifest.success) return manifest.data;
  throw new FileError(`${path} is damaged: ${z.prettifyError(manifest.error)}; build the index again`);
}

function* passageLines(passages: PassageStore): Generator<string> {
  for (let position = 0; position < passages.count; position++) yield passageLine(passages.get(position));
}

function textLines(buffer: ArrayBuffer): string[] {
  return new TextDecoder().decode(buffer).split("\n").slice(0, -1);
}

/** Passages as bytes of JSON Lines, parsed when asked for: a corpus of a million passages opens without a million objects. */
function storedPassages(buffer: ArrayBuffer, path: string, count: number): PassageStore {
  const bytes = Buffer.from(buffer);
  const starts = new Float64Array(count + 1);
  for (let line = 0; line < count; line++) starts[line + 1] = bytes.indexOf(10, starts[line] as number) + 1;
  return {
    count,
    get: (position) => {
      const text = bytes.toString("utf8", starts[position] as number, (starts[position + 1] as number) - 1);
      const passage = passageOf(JSON.parse(text) as Record<string, unknown>, path, position + 1);
      if (passage instanceof Error) throw passage;
      return passage satisfies Passage;
    },
  };
}
