/**
 * `tokenizer.json` of Hugging Face and back. What `writeTokenizer` wrote is read by our own byte-pair code, which
 * agrees with the Rust library `tokenizers`; any other file is read through the package `@huggingface/tokenizers`.
 * Beside it lies `tokenizer_config.json`, which names the tokens for end of text and padding.
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { Tokenizer as LibraryTokenizer } from "@huggingface/tokenizers";
import { z } from "zod";
import { DataFormatError } from "../errors.ts";
import { exists, fileError, writeFileAtomic } from "../shared/files.ts";
import { canonicalJson, sha256 } from "../shared/hash.ts";
import { type BytePairTokenizer, createBytePair, endOfText, padding } from "./byte-pair.ts";
import type { Tokenizer } from "./tokenizer.ts";

const modelFile = "tokenizer.json";
const configFile = "tokenizer_config.json";

/** A tokenizer that the library runs; it is written as it was read. */
export interface LibraryFileTokenizer extends Tokenizer {
  /** The content of both files. */
  readonly files: { readonly model: object; readonly config: object };
}

export type WritableTokenizer = BytePairTokenizer | LibraryFileTokenizer;

/** Writes both files into `folder`, which is made if it is missing. Throws `FileError`. */
export async function writeTokenizer(folder: string, tokenizer: WritableTokenizer): Promise<void> {
  const { model, config } =
    "files" in tokenizer ? tokenizer.files : { model: tokenizerJson(tokenizer), config: tokenizerConfig };
  await writeFileAtomic(join(folder, modelFile), `${JSON.stringify(model, null, 1)}\n`);
  await writeFileAtomic(join(folder, configFile), `${JSON.stringify(config, null, 1)}\n`);
}

/**
 * Reads the tokenizer in `folder`: ours, or any that `@huggingface/tokenizers` can read. `encode` adds nothing to a
 * text. Throws `FileError` or `DataFormatError`.
 */
export async function readTokenizer(folder: string): Promise<WritableTokenizer> {
  const file = join(folder, modelFile);
  const json = await readJson(file);
  const configPath = join(folder, configFile);
  const config = (await exists(configPath)) ? await readJson(configPath) : {};
  const own = ownFormat.safeParse(json);
  if (own.success) return fromOwnFormat(own.data);
  try {
    return fromLibrary(json as object, configFormat.parse(config), file);
  } catch (cause) {
    if (cause instanceof DataFormatError) throw cause;
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new DataFormatError(file, undefined, `expected a Hugging Face tokenizer: ${reason}`, { cause });
  }
}

const byteLevel = {
  type: "ByteLevel",
  add_prefix_space: false,
  trim_offsets: true,
  use_regex: true,
} as const;

const tokenizerConfig = {
  tokenizer_class: "PreTrainedTokenizerFast",
  eos_token: endOfText,
  pad_token: padding,
  clean_up_tokenization_spaces: false,
} as const;

/** Tags are added tokens but not "special": then decoding that skips special tokens still shows them. */
function tokenizerJson({ vocabulary, merges, specialTokens }: BytePairTokenizer): z.input<typeof ownFormat> {
  return {
    version: "1.0",
    truncation: null,
    padding: null,
    added_tokens: specialTokens.map((content) => ({
      id: vocabulary.indexOf(content),
      content,
      single_word: false,
      lstrip: false,
      rstrip: false,
      normalized: false,
      special: content === endOfText || content === padding,
    })),
    normalizer: null,
    pre_tokenizer: byteLevel,
    post_processor: null,
    decoder: byteLevel,
    model: {
      type: "BPE",
      dropout: null,
      unk_token: null,
      continuing_subword_prefix: null,
      end_of_word_suffix: null,
      fuse_unk: false,
      byte_fallback: false,
      ignore_merges: false,
      vocab: Object.fromEntries(vocabulary.map((piece, id) => [piece, id])),
      merges: merges.map(([left, right]) => [left, right]),
    },
  };
}

const no = z.literal(false);
const byteLevelFormat = z.strictObject({
  type: z.literal("ByteLevel"),
  add_prefix_space: no,
  trim_offsets: z.boolean(),
  use_regex: z.literal(true),
});

/** Exactly the files that `createBytePair` implements; anything else goes to the library. */
const ownFormat = z.strictObject({
  version: z.literal("1.0"),
  truncation: z.null(),
  padding: z.null(),
  added_tokens: z.array(
    z.strictObject({
      id: z.int(),
      content: z.string().min(1),
      single_word: no,
      lstrip: no,
      rstrip: no,
      normalized: no,
      special: z.boolean(),
    }),
  ),
  normalizer: z.null(),
  pre_tokenizer: byteLevelFormat,
  post_processor: z.null(),
  decoder: byteLevelFormat,
  model: z.strictObject({
    type: z.literal("BPE"),
    dropout: z.null(),
    unk_token: z.null(),
    continuing_subword_prefix: z.null(),
    end_of_word_suffix: z.null(),
    fuse_unk: no,
    byte_fallback: no,
    ignore_merges: no,
    vocab: z
      .record(z.string(), z.int())
      .refine(
        (vocab) => endOfText in vocab && padding in vocab && areIdsDense(Object.values(vocab)),
        "ids are dense",
      ),
    merges: z.array(z.tuple([z.string(), z.string()])),
  }),
});

function areIdsDense(ids: readonly number[]): boolean {
  const seen = new Set(ids);
  return seen.size === ids.length && ids.every((id) => id >= 0 && id < ids.length);
}

function fromOwnFormat({ model, added_tokens }: z.output<typeof ownFormat>): BytePairTokenizer {
  const vocabulary: string[] = [];
  for (const [piece, id] of Object.entries(model.vocab)) vocabulary[id] = piece;
  return createBytePair({
    vocabulary,
    merges: model.merges,
    specialTokens: added_tokens.map((token) => token.content),
  });
}

/** A token is named by its text, or by an object that holds it. */
const namedToken = z
  .union([z.string(), z.object({ content: z.string() }).transform((token) => token.content)])
  .nullish();
const configFormat = z.looseObject({ eos_token: namedToken, pad_token: namedToken });
const addedTokensFormat = z.object({
  added_tokens: z.array(z.looseObject({ id: z.int(), content: z.string() })).default([]),
});

function fromLibrary(
  json: object,
  config: z.output<typeof configFormat>,
  file: string,
): LibraryFileTokenizer {
  const added = addedTokensFormat.parse(json).added_tokens;
  const library = new LibraryTokenizer(json, { ...config, clean_up_tokenization_spaces: false });
  const idOf = (token: string): number => {
    const id = library.token_to_id(token);
    if (id === undefined)
      throw new DataFormatError(
        file,
        undefined,
        `${configFile} names ${JSON.stringify(token)}, which has no id`,
      );
    return id;
  };
  const end = config.eos_token ?? commonEndTokens.find((token) => library.token_to_id(token) !== undefined);
  if (end == null)
    throw new DataFormatError(
      file,
      undefined,
      `no token ends a text; name it as "eos_token" in ${configFile}`,
    );
  const endOfTextId = idOf(end);
  return {
    files: { model: json, config },
    hash: sha256(canonicalJson({ json, endOfTextId })),
    vocabularySize: [...library.get_vocab().values()].reduce((most, id) => Math.max(most, id + 1), 0),
    endOfTextId,
    paddingId: config.pad_token == null ? endOfTextId : idOf(config.pad_token),
    specialTokens: added.map((token) => token.content).filter((token) => token.trim() !== ""),
    encode: (text) => library.encode(text, { add_special_tokens: false }).ids,
    decode: (tokens) =>
      tokens.length === 0
        ? ""
        : library.decode([...tokens], { skip_special_tokens: false, clean_up_tokenization_spaces: false }),
  };
}

const commonEndTokens = ["<|im_end|>", "<|eot_id|>", "<|endoftext|>", "</s>"];

async function readJson(file: string): Promise<unknown> {
  let text: string;
  try {
    text = await readFile(file, "utf8");
  } catch (cause) {
    throw fileError(`cannot read ${file}`, cause);
  }
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new DataFormatError(file, undefined, `expected JSON: ${(cause as Error).message}`, { cause });
  }
}
