/**
 * How text is cut into words before byte-pair encoding, by the names that GGUF files give it (`tokenizer.ggml.pre`):
 * the parts of a `tokenizer.json` that such a name stands for. Each is as its models' own files say.
 */

export function byteLevel(usesPattern: boolean): object {
  return { type: "ByteLevel", add_prefix_space: false, trim_offsets: true, use_regex: usesPattern };
}

function byPattern(numbers: string): object {
  const pattern = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|${numbers}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+`;
  const split = { type: "Split", pattern: { Regex: pattern }, behavior: "Isolated", invert: false };
  return { type: "Sequence", pretokenizers: [split, byteLevel(false)] };
}

/** How text is cut into words, by the name that llama.cpp gives it. */
export interface Splitting {
  readonly preTokenizer: object;
  readonly normalizer: object | null;
  /** A word that is a token is not built from merges. */
  readonly ignoresMerges: boolean;
  /** Whether a token begins every text, where the file does not say. */
  readonly hasBegin: boolean;
}

const plain = { normalizer: null, ignoresMerges: false, hasBegin: false };
const digitsApart = { type: "Digits", individual_digits: true };

export const splittings: Readonly<Record<string, Splitting>> = {
  "gpt-2": { ...plain, preTokenizer: byteLevel(true) },
  smollm: {
    ...plain,
    preTokenizer: { type: "Sequence", pretokenizers: [digitsApart, byteLevel(true)] },
  },
  "llama-bpe": {
    ...plain,
    preTokenizer: byPattern("\\p{N}{1,3}"),
    ignoresMerges: true,
    hasBegin: true,
  },
  qwen2: { ...plain, preTokenizer: byPattern("\\p{N}"), normalizer: { type: "NFC" } },
};
