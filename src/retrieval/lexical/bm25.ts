/**
 * Builds a BM25 index from a stream of passages; the face of the embedded index (the class, its options and the
 * folder it is kept in). All passages stay in memory while it is built.
 */
import { z } from "zod";
import { corpusHasher } from "../../corpus/corpus-hash.ts";
import type { Passage } from "../../corpus/passage.ts";
import { ConfigError, RetrieverError } from "../../errors.ts";
import { Bm25Index, type Bm25Options, bm25OptionsSchema } from "./bm25-index.ts";
import { type Postings, PostingsBuilder } from "./postings.ts";

export { openIndex, saveIndex } from "../index-folder.ts";
export { Bm25Index, type Bm25Options, bm25OptionsSchema } from "./bm25-index.ts";

/**
 * Builds an index; `options` as in `bm25OptionsSchema`. Throws `ConfigError` for
 * options that the schema refuses, `RetrieverError` when there is no passage.
 */
export async function buildBm25Index(
  passages: Iterable<Passage> | AsyncIterable<Passage>,
  options: Partial<Bm25Options> = {},
): Promise<Bm25Index> {
  const settings = settingsOf(options);
  const builder = new PostingsBuilder(settings);
  const hasher = corpusHasher();
  const kept: Passage[] = [];
  for await (const passage of passages) {
    builder.add(passage);
    hasher.add(passage);
    kept.push(passage);
  }
  if (kept.length === 0)
    throw new RetrieverError("cannot index an empty corpus; expected at least one passage");
  const postings = builder.finish();
  return new Bm25Index({
    options: settings,
    corpusHash: hasher.digest(),
    passages: { count: kept.length, get: (position) => kept[position] as Passage },
    vocabulary: postings.vocabulary,
    starts: postings.starts,
    postings: postings.passages,
    impacts: impactsOf(postings, settings),
  });
}

function settingsOf(options: Partial<Bm25Options>): Bm25Options {
  const parsed = bm25OptionsSchema.safeParse(options);
  if (parsed.success) return parsed.data;
  throw new ConfigError(`index options: ${z.prettifyError(parsed.error)}`);
}

/** The impact of every entry, see `bm25-index.ts`. */
function impactsOf(postings: Postings, { k1, b }: Bm25Options): Float32Array {
  const norms = lengthNorms(postings.lengths, k1, b);
  const impacts = new Float32Array(postings.passages.length);
  for (let term = 0; term < postings.vocabulary.length; term++) {
    const [from, to] = [postings.starts[term] as number, postings.starts[term + 1] as number];
    const idf = Math.log(1 + (norms.length - (to - from) + 0.5) / (to - from + 0.5));
    for (let i = from; i < to; i++) {
      const frequency = postings.frequencies[i] as number;
      impacts[i] = (idf * frequency) / (frequency + (norms[postings.passages[i] as number] as number));
    }
  }
  return impacts;
}

/** (passages) k1 (1 - b + b length / mean length) */
function lengthNorms(lengths: Uint32Array, k1: number, b: number): Float64Array {
  const mean = lengths.reduce((total, length) => total + length, 0) / lengths.length;
  return Float64Array.from(lengths, (length) => k1 * (1 - b + (mean === 0 ? 0 : (b * length) / mean)));
}
