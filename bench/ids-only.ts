/** What benches with random weights use in place of text: ids alone. */
import type { Random } from "../src/shared/random.ts";
import type { BytePairTokenizer } from "../src/tokenizer/byte-pair.ts";

/** Ids without text, of which none ends a completion. */
export function idsOnly(vocabularySize: number): BytePairTokenizer {
  return {
    hash: "ids",
    vocabularySize,
    endOfTextId: -1,
    paddingId: 0,
    vocabulary: [],
    merges: [],
    specialTokens: [],
    encode: () => [],
    decode: () => "",
  };
}

export function randomIds(chance: Random, count: number, vocabularySize: number): number[] {
  return Array.from({ length: count }, () => chance.below(vocabularySize));
}
