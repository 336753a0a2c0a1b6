/**
 * Byte-level byte-pair encoding (Sennrich et al. 2016; bytes as in GPT-2): a word starts as its bytes, then the
 * pair with the lowest rank is joined, leftmost first, until no pair has a rank. Every string can be encoded and
 * comes back exactly; a lone surrogate, which is no Unicode text, comes back as U+FFFD.
 *
 * Training is in `byte-pair-training.ts`, files are in `tokenizer-file.ts`. No normaliser, no subword dropout.
 */
import { assert, ConfigError } from "../errors.ts";
import { canonicalJson, sha256 } from "../shared/hash.ts";
import { byteCharacters, bytesOfPiece } from "./byte-alphabet.ts";
import { Heap } from "./heap.ts";
import { specialTokenSplitter, splitWords } from "./split.ts";
import type { Tokenizer } from "./tokenizer.ts";

export const endOfText = "<|endoftext|>";
export const padding = "<|padding|>";

/** What defines a byte-pair tokenizer. */
export interface BytePairModel {
  /** Piece of each id: added tokens as they are, other pieces in the byte alphabet; no piece twice. */
  readonly vocabulary: readonly string[];
  /** Pairs of pieces in the order of their rank. */
  readonly merges: readonly (readonly [string, string])[];
  /** Added tokens, all of them in the vocabulary, `endOfText` and `padding` among them. */
  readonly specialTokens: readonly string[];
}

export interface BytePairTokenizer extends Tokenizer, BytePairModel {}

const utf8 = new TextEncoder();
const maxCachedWords = 1 << 16;
const maxCachedWordLength = 64;

/** A tokenizer from its parts. Throws `ConfigError` when a part is missing: a byte, an added token, the result of a merge. */
export function createBytePair(model: BytePairModel): BytePairTokenizer {
  const { vocabulary, specialTokens } = model;
  const idOf = new Map(vocabulary.map((piece, id) => [piece, id]));
  const pieceId = (piece: string): number => {
    const id = idOf.get(piece);
    if (id === undefined)
      throw new ConfigError(`the vocabulary of ${vocabulary.length} pieces lacks ${JSON.stringify(piece)}`);
    return id;
  };
  const special = new Map(specialTokens.map((token) => [token, pieceId(token)]));
  const bytes = vocabulary.map((piece) => pieceBytes(piece, special.has(piece)));
  const encodeWord = wordEncoder(model, pieceId);
  const split = specialTokenSplitter(specialTokens);
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  return {
    ...model,
    hash: sha256(canonicalJson({ vocabulary, merges: model.merges, specialTokens })),
    vocabularySize: vocabulary.length,
    endOfTextId: pieceId(endOfText),
    paddingId: pieceId(padding),
    encode(text) {
      const ids: number[] = [];
      const parts = split(text);
      for (let i = 0; i < parts.length; i++) {
        const part = parts[i] as string;
        if (i % 2 === 1) ids.push(special.get(part) as number);
        else for (const word of splitWords(part)) for (const id of encodeWord(word)) ids.push(id);
      }
      return ids;
    },
    decode(tokens) {
      return decoder.decode(concatenate(tokens, bytes));
    },
  };
}

function pieceBytes(piece: string, isSpecial: boolean): Uint8Array {
  const bytes = isSpecial ? utf8.encode(piece) : bytesOfPiece(piece);
  if (bytes === undefined)
    throw new ConfigError(
      `the piece ${JSON.stringify(piece)} is no added token and not written in the byte alphabet`,
    );
  return bytes;
}

function concatenate(tokens: readonly number[], bytes: readonly Uint8Array[]): Uint8Array {
  let length = 0;
  for (const token of tokens) {
    assert(token >= 0 && token < bytes.length, `token id ${token} is in a vocabulary of ${bytes.length}`);
    length += (bytes[token] as Uint8Array).length;
  }
  const result = new Uint8Array(length);
  let offset = 0;
  for (const token of tokens) {
    const piece = bytes[token] as Uint8Array;
    result.set(piece, offset);
    offset += piece.length;
  }
  return result;
}

/** Ids of one word; short words are remembered. */
function wordEncoder(
  { vocabulary, merges }: BytePairModel,
  pieceId: (piece: string) => number,
): (word: string) => readonly number[] {
  const size = vocabulary.length;
  const byteIds = byteCharacters.map(pieceId);
  const ranks = new Map<number, number>();
  const results = merges.map(([left, right], rank) => {
    ranks.set(pieceId(left) * size + pieceId(right), rank);
    return pieceId(left + right);
  });
  const rankOf = (left: number, right: number): number | undefined => ranks.get(left * size + right);
  const cache = new Map<string, readonly number[]>();
  return (word) => {
    const known = cache.get(word);
    if (known !== undefined) return known;
    const ids = mergeAll(
      Array.from(utf8.encode(word), (byte) => byteIds[byte] as number),
      rankOf,
      results,
    );
    if (word.length <= maxCachedWordLength) {
      if (cache.size >= maxCachedWords) cache.clear();
      cache.set(word, ids);
    }
    return ids;
  };
}

/**
 * Joins pairs in `ids` (N) by rank, equal ranks from the left, in O(N log N). Candidates wait in a heap under
 * the key rank * 2^32 + position; one whose pair has changed meanwhile is skipped.
 */
function mergeAll(
  ids: number[],
  rankOf: (left: number, right: number) => number | undefined,
  results: readonly number[],
): readonly number[] {
  const end = ids.length;
  const next = Int32Array.from({ length: end }, (_, i) => i + 1);
  const previous = Int32Array.from({ length: end }, (_, i) => i - 1);
  const candidates = new Heap<number>((a, b) => a < b);
  const offer = (position: number): void => {
    const right = next[position] as number;
    if (right >= end) return;
    const rank = rankOf(ids[position] as number, ids[right] as number);
    if (rank !== undefined) candidates.push(rank * 2 ** 32 + position);
  };
  for (let i = 0; i < end; i++) offer(i);
  for (let key = candidates.pop(); key !== undefined; key = candidates.pop()) {
    const rank = Math.floor(key / 2 ** 32);
    const position = key % 2 ** 32;
    const right = next[position] as number;
    if (ids[position] === -1 || right >= end) continue;
    if (rankOf(ids[position] as number, ids[right] as number) !== rank) continue;
    ids[position] = results[rank] as number;
    ids[right] = -1;
    const after = next[right] as number;
    next[position] = after;
    if (after < end) previous[after] = position;
    offer(position);
    const before = previous[position] as number;
    if (before >= 0) offer(before);
  }
  return ids.filter((id) => id !== -1);
}
