/**
 * Learns a byte-pair vocabulary: from single bytes on, the most frequent pair of neighbouring pieces becomes a
 * new piece, until the vocabulary is full (Sennrich et al. 2016). Of equally frequent pairs the one with the
 * smaller ids wins, ids and order as in the trainer of the Rust library `tokenizers`.
 *
 * Counts are updated only in the words that hold the joined pair, so the cost follows the number of changes,
 * not vocabulary size times corpus size. Nothing is learnt across words or from inside added tokens.
 */
import { ConfigError } from "../errors.ts";
import { byteCharacters } from "./byte-alphabet.ts";
import { type BytePairTokenizer, createBytePair, endOfText, padding } from "./byte-pair.ts";
import { PairQueue } from "./pair-queue.ts";
import { specialTokenSplitter, splitWords } from "./split.ts";

export interface BytePairTraining {
  /** Most pieces in all: added tokens, 256 bytes, learnt pieces. Fewer when the corpus holds no more pairs. */
  readonly vocabularySize: number;
  /** Added tokens besides end of text and padding, such as the tags of a codec; they get the lowest ids. */
  readonly specialTokens: readonly string[];
  /** A pair is joined only when it occurs at least this often; default 2. */
  readonly lowerFrequencyLimit?: number;
}

/** Trains a tokenizer on `texts`. Throws `ConfigError` when the vocabulary cannot even hold bytes and added tokens. */
export function trainBytePair(texts: Iterable<string>, options: BytePairTraining): BytePairTokenizer {
  const specialTokens = [...new Set([endOfText, padding, ...options.specialTokens])];
  const smallest = specialTokens.length + 256;
  if (!Number.isInteger(options.vocabularySize) || options.vocabularySize < smallest)
    throw new ConfigError(
      `vocabularySize must be an integer of at least ${smallest} (256 bytes and ${specialTokens.length} added tokens), got ${options.vocabularySize}`,
    );
  const vocabulary = [...specialTokens, ...[...byteCharacters].sort()];
  const { words, counts } = countWords(texts, specialTokens, vocabulary);
  const merges = learnMerges(words, counts, vocabulary, options);
  return createBytePair({ vocabulary, merges, specialTokens });
}

interface CountedWords {
  /** Each distinct word as ids. */
  readonly words: number[][];
  readonly counts: readonly number[];
}

function countWords(
  texts: Iterable<string>,
  specialTokens: readonly string[],
  vocabulary: readonly string[],
): CountedWords {
  const split = specialTokenSplitter(specialTokens);
  const countOf = new Map<string, number>();
  for (const text of texts) {
    split(text).forEach((part, i) => {
      if (i % 2 === 1) return;
      for (const word of splitWords(part)) countOf.set(word, (countOf.get(word) ?? 0) + 1);
    });
  }
  const idOf = new Map(vocabulary.map((piece, id) => [piece, id]));
  const utf8 = new TextEncoder();
  const toIds = (word: string): number[] =>
    Array.from(utf8.encode(word), (byte) => idOf.get(byteCharacters[byte] as string) as number);
  return { words: [...countOf.keys()].map(toIds), counts: [...countOf.values()] };
}

/** Appends learnt pieces to `vocabulary` and returns the merges; `words` are rewritten on the way. */
function learnMerges(
  words: number[][],
  counts: readonly number[],
  vocabulary: string[],
  { vocabularySize, lowerFrequencyLimit = 2 }: BytePairTraining,
): [string, string][] {
  const pairs = new PairQueue();
  words.forEach((word, index) => {
    for (let i = 0; i + 1 < word.length; i++)
      pairs.add(word[i] as number, word[i + 1] as number, counts[index] as number, index);
  });
  const idOf = new Map(vocabulary.map((piece, id) => [piece, id]));
  const merges: [string, string][] = [];
  while (vocabulary.length < vocabularySize) {
    const best = pairs.takeMostFrequent();
    if (best === undefined || best.count < Math.max(1, lowerFrequencyLimit)) break;
    const [left, right] = [vocabulary[best.left] as string, vocabulary[best.right] as string];
    merges.push([left, right]);
    let joined = idOf.get(left + right);
    if (joined === undefined) {
      joined = vocabulary.push(left + right) - 1;
      idOf.set(left + right, joined);
    }
    for (const index of best.words) {
      const word = words[index] as number[];
      const count = counts[index] as number;
      words[index] = joinPair(word, best.left, best.right, joined, (a, b, sign) => {
        const isBest = a === best.left && b === best.right;
        if (!isBest) pairs.add(a, b, sign * count, index);
      });
    }
  }
  return merges;
}

/** `word` with each (left, right) replaced by `joined`, from the left; reports pairs that vanish (-1) and appear (+1). */
function joinPair(
  word: readonly number[],
  left: number,
  right: number,
  joined: number,
  change: (a: number, b: number, sign: 1 | -1) => void,
): number[] {
  const result: number[] = [];
  for (let i = 0; i < word.length; i++) {
    const id = word[i] as number;
    if (id !== left || word[i + 1] !== right) {
      result.push(id);
      continue;
    }
    const before = result.at(-1);
    const after = word[i + 2];
    if (before !== undefined) {
      change(before, left, -1);
      change(before, joined, 1);
    }
    if (after !== undefined) {
      change(right, after, -1);
      change(joined, after, 1);
    }
    result.push(joined);
    i++;
  }
  return result;
}
