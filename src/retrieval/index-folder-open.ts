/**
 * Opens an index folder in memory or on disk. On disk, entries and passages are read when a query needs them: the
 * operating system keeps what is read often, and a bounded cache keeps the entries of the last terms; in memory are
 * the vocabulary and 16 bytes a term. Opening then checks sizes, not contents; in memory everything is checked.
 */
import { join } from "node:path";
import { FileError, RetrieverError } from "../errors.ts";
import { PostingCache } from "./index-folder-cache.ts";
import { positionFinder } from "./index-folder-ids.ts";
import { type Manifest, readManifest } from "./index-folder-manifest.ts";
import { totalBytes } from "./index-folder-write.ts";
import { Bm25Index } from "./lexical/bm25-index.ts";
import { type MemoryPostings, memoryPostings } from "./lexical/memory-postings.ts";
import { RankPool } from "./lexical/rank-pool.ts";
import { entryMemory } from "./lexical/sum-kernel.ts";
import type { PostingStore } from "./lexical/term-entries.ts";
import { Vocabulary } from "./lexical/vocabulary.ts";
import { checkPart, PartFile, readCheckedInto, readCheckedPart, readPart } from "./part-files.ts";
import { lineStore, memoryBytes } from "./passage-store.ts";

export interface OpenIndexOptions {
  /** Refuse an index of another corpus than this one. */
  readonly corpusHash?: string;
  /** Where entries and passages are kept; default `auto`: in memory when the index has at most 256 MiB. */
  readonly storage?: "memory" | "disk" | "auto";
  /**
   * Threads that answer calls of many queries, for an index in memory; default 1, which is the caller's. On disk the
   * caller's thread answers everything.
   */
  readonly threads?: number;
  /** Most bytes of entries that are kept when they are on disk; default 64 MiB. */
  readonly cacheBytes?: number;
}

const AUTO_MEMORY_BYTES = 256 << 20;
const CACHE_BYTES = 64 << 20;

/**
 * Opens an index folder. Throws `FileError` when it is missing or damaged, and `RetrieverError` when another
 * version of Forager built it or it belongs to another corpus; both say to build it again. `close` the index when
 * it is no longer needed. Other folders inside it, such as one of vectors, are left alone.
 */
export async function openIndex(folder: string, options: OpenIndexOptions = {}): Promise<Bm25Index> {
  const manifest = await readManifest(folder);
  const { corpusHash, parts } = manifest;
  if (options.corpusHash !== undefined && options.corpusHash !== corpusHash)
    throw new RetrieverError(
      `${folder} is the index of another corpus: expected corpus hash ${options.corpusHash.slice(0, 12)}…, ` +
        `got ${corpusHash.slice(0, 12)}…; build the index again from the corpus in use`,
    );
  const { storage = "auto", cacheBytes = CACHE_BYTES } = options;
  const isInMemory = storage === "memory" || (storage === "auto" && totalBytes(parts) <= AUTO_MEMORY_BYTES);
  return isInMemory
    ? openInMemory(folder, manifest, options.threads ?? 1)
    : openOnDisk(folder, manifest, cacheBytes);
}

/** Reads every byte of an index folder. Throws `FileError` or `RetrieverError` when anything is not as it was written. */
export async function verifyIndex(folder: string): Promise<{ readonly bytes: number }> {
  const { parts } = await readManifest(folder);
  for (const part of Object.values(parts)) checkPart(folder, part);
  return { bytes: totalBytes(parts) };
}

function openInMemory(
  folder: string,
  { options, corpusHash, counts, parts }: Manifest,
  threads: number,
): Bm25Index {
  const content = (name: keyof Manifest["parts"]) => readCheckedPart(folder, parts[name], threads > 1);
  const bytes = (name: "passages" | "passageStarts" | "ids") =>
    memoryBytes(join(folder, parts[name].file), readCheckedPart(folder, parts[name]));
  const passages = lineStore(bytes("passages"), bytes("passageStarts"), counts.passages);
  const vocabulary = Buffer.from(content("vocabulary"));
  const vocabularyStarts = new Uint32Array(content("vocabularyStarts"));
  const postings = {
    starts: new Float64Array(content("starts")),
    bounds: new Float32Array(content("bounds")),
    ...entriesInPlace(folder, parts, threads),
  };
  const shared = { options, passageCount: counts.passages, vocabulary, vocabularyStarts, postings };
  return new Bm25Index({
    options,
    corpusHash,
    passages,
    vocabulary: new Vocabulary(vocabulary, vocabularyStarts),
    postings: memoryPostings(postings),
    positionOf: positionFinder(bytes("ids"), passages),
    ...(threads > 1 && { pool: new RankPool(shared, threads) }),
  });
}

/** The entries in memory where kernels can add them in place, if they fit into that of WebAssembly. */
function entriesInPlace(
  folder: string,
  parts: Manifest["parts"],
  threads: number,
): Pick<MemoryPostings, "passages" | "impacts" | "memory"> {
  const place = entryMemory(parts.impacts.bytes / Float32Array.BYTES_PER_ELEMENT, threads);
  if (place === undefined)
    return {
      passages: new Uint32Array(readCheckedPart(folder, parts.postings, threads > 1)),
      impacts: new Float32Array(readCheckedPart(folder, parts.impacts, threads > 1)),
    };
  const bytesOf = ({ buffer, byteOffset, byteLength }: ArrayBufferView): Uint8Array =>
    new Uint8Array(buffer, byteOffset, byteLength);
  readCheckedInto(bytesOf(place.passages), folder, parts.postings);
  readCheckedInto(bytesOf(place.impacts), folder, parts.impacts);
  return place;
}

function openOnDisk(folder: string, manifest: Manifest, cacheBytes: number): Bm25Index {
  const { options, corpusHash, counts, parts } = manifest;
  const files: PartFile[] = [];
  const open = (name: "passages" | "passageStarts" | "ids" | "postings" | "impacts"): PartFile => {
    const file = new PartFile(folder, parts[name]);
    files.push(file);
    return file;
  };
  const close = async (): Promise<void> => {
    for (const file of files) file.close();
  };
  try {
    const passages = lineStore(open("passages"), open("passageStarts"), counts.passages);
    return new Bm25Index({
      options,
      corpusHash,
      passages,
      vocabulary: new Vocabulary(
        Buffer.from(readPart(folder, parts.vocabulary)),
        new Uint32Array(readPart(folder, parts.vocabularyStarts)),
      ),
      postings: diskPostings(
        folder,
        manifest,
        new PostingCache(open("postings"), open("impacts"), cacheBytes),
      ),
      positionOf: positionFinder(open("ids"), passages),
      close,
    });
  } catch (error) {
    void close();
    throw error;
  }
}

function diskPostings(folder: string, { counts, parts }: Manifest, cache: PostingCache): PostingStore {
  const starts = new Float64Array(readPart(folder, parts.starts));
  const bounds = new Float32Array(readPart(folder, parts.bounds));
  return {
    count: counts.entries,
    entriesOf: (term, weight) => {
      const from = starts[term] as number;
      const to = starts[term + 1] as number;
      if (!(from >= 0 && to >= from && to <= counts.entries))
        throw new FileError(`${join(folder, parts.starts.file)} is damaged; build the index again`);
      const { passages, impacts } = cache.entries(term, from, to);
      return {
        passages,
        impacts,
        from: 0,
        to: passages.length,
        weight,
        least: bounds[2 * term] as number,
        greatest: bounds[2 * term + 1] as number,
      };
    },
  };
}
