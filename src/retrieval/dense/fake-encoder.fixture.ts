/**
 * A small encoder for tests: every word has a random direction of its own, a text is the sum of its words' directions
 * scaled to length 1. Equal texts have equal vectors and shared words bring texts together; nothing is learned.
 */
import { sha256 } from "../../shared/hash.ts";
import { random } from "../../shared/random.ts";
import { type EncodeOptions, type Encoder, encoderHash, type PassageText, passageText } from "./encoder.ts";
import { normalizeRows } from "./pooling.ts";

export interface FakeEncoder extends Encoder {
  /** Passages encoded so far. */
  readonly encoded: { passages: number };
}

const recipe = {
  pooling: "mean",
  queryPrefix: "",
  passagePrefix: "",
  normalize: true,
  maxTokens: 512,
} as const;

/** `onPassages` is called before passages are encoded, to fail there. */
export function fakeEncoder(
  options: { readonly name?: string; readonly dimensions?: number; readonly onPassages?: () => void } = {},
): FakeEncoder {
  const { name = "fake", dimensions = 48, onPassages } = options;
  const directions = new Map<string, Float32Array>();
  const directionOf = (word: string): Float32Array => {
    const known = directions.get(word);
    if (known) return known;
    const chance = random(1, name, word);
    const made = Float32Array.from({ length: dimensions }, () => chance.normal());
    directions.set(word, made);
    return made;
  };
  const encoded = { passages: 0 };
  const encode = (texts: readonly string[], { signal, onProgress }: EncodeOptions): Float32Array => {
    signal?.throwIfAborted();
    const vectors = new Float32Array(texts.length * dimensions);
    for (const [row, text] of texts.entries()) {
      const target = vectors.subarray(row * dimensions, (row + 1) * dimensions);
      // Words in a fixed order, so that equal bags give equal sums.
      for (const word of text
        .toLowerCase()
        .split(/[^\p{L}\p{N}]+/u)
        .filter(Boolean)
        .sort()) {
        const direction = directionOf(word.slice(0, 50));
        for (let i = 0; i < dimensions; i++) target[i] = (target[i] as number) + (direction[i] as number);
      }
      onProgress?.((row + 1) / texts.length);
    }
    normalizeRows(vectors, dimensions);
    return vectors;
  };
  return {
    identity: { ...recipe, name, dimensions, hash: encoderHash([sha256(name)], recipe) },
    encoded,
    encodeQueries: async (queries, settings = {}) => encode(queries, settings),
    encodePassages: async (passages: readonly PassageText[], settings = {}) => {
      onPassages?.();
      encoded.passages += passages.length;
      return encode(passages.map(passageText), settings);
    },
    close: async () => undefined,
  };
}
