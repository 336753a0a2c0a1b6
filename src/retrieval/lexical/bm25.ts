/**
 * Builds a BM25 index in memory from a stream of passages; the face of the embedded index (the class, its options
 * and the folder it is kept in). All passages stay in memory: larger corpora go to a folder (`buildIndexFolder`).
 */
import { corpusHasher } from "../../corpus/corpus-hash.ts";
import type { Passage } from "../../corpus/passage.ts";
import { RetrieverError } from "../../errors.ts";
import { Bm25Index } from "./bm25-index.ts";
import { type Bm25Options, formulaOf, settingsOf } from "./bm25-options.ts";
import { memoryPostings, segmentPostings } from "./memory-postings.ts";
import { SegmentBuilder } from "./postings.ts";
import { vocabularyOf } from "./vocabulary.ts";

export { openIndex, saveIndex } from "../index-folder.ts";
export { Bm25Index } from "./bm25-index.ts";
export { type Bm25Options, bm25OptionsSchema } from "./bm25-options.ts";

/**
 * Builds an index; `options` as in `bm25OptionsSchema`. Throws `ConfigError` for
 * options that the schema refuses, `RetrieverError` when there is no passage.
 */
export async function buildBm25Index(
  passages: Iterable<Passage> | AsyncIterable<Passage>,
  options: Partial<Bm25Options> = {},
): Promise<Bm25Index> {
  const settings = settingsOf(options);
  const builder = new SegmentBuilder(settings);
  const hasher = corpusHasher();
  const kept: Passage[] = [];
  for await (const passage of passages) {
    builder.add(passage);
    hasher.add(passage);
    kept.push(passage);
  }
  if (kept.length === 0)
    throw new RetrieverError("cannot index an empty corpus; expected at least one passage");
  const segment = builder.take();
  let positions: Map<string, number> | undefined;
  return new Bm25Index({
    options: settings,
    corpusHash: hasher.digest(),
    passages: { count: kept.length, get: (position) => kept[position] as Passage },
    vocabulary: vocabularyOf(segment.terms),
    postings: memoryPostings(segmentPostings(segment, formulaOf(segment.lengths, settings))),
    positionOf: (id) => {
      positions ??= new Map(kept.map((passage, position) => [passage.id, position]));
      return positions.get(id);
    },
  });
}
