/** The tokenizer of `npm run bench -- orchestration`, the same on both sides: bytes. */
import type { BytePairTokenizer } from "../../src/tokenizer/byte-pair.ts";
import { trainBytePair } from "../../src/tokenizer/byte-pair-training.ts";

export function byteTokenizer(): BytePairTokenizer {
  return trainBytePair([], { vocabularySize: 258, specialTokens: [] });
}
