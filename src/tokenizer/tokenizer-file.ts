/**
 * `tokenizer.json` of Hugging Face and back. What `writeTokenizer` wrote is read by our own byte-pair code, which
 * agrees with the Rust library `tokenizers`; any other file, or one that was given a chat template, is read through the
 * package `@huggingface/tokenizers`. Beside it lies `tokenizer_config.json`, which names the tokens for end of text and padding.
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { DataFormatError } from "../errors.ts";
import { exists, fileError, writeFileAtomic } from "../shared/files.ts";
import { type BytePairTokenizer, createBytePair, endOfText, padding } from "./byte-pair.ts";
import {
  configFormat,
  type LibraryFileTokenizer,
  type LibraryReading,
  libraryTokenizer,
  type TokenizerConfig,
} from "./library-tokenizer.ts";

const modelFile = "tokenizer.json";
const configFile = "tokenizer_config.json";
const templateFile = "chat_template.jinja";
const generationFile = "generation_config.json";
const modelConfigFile = "config.json";

export type { LibraryFileTokenizer } from "./library-tokenizer.ts";

export type WritableTokenizer = BytePairTokenizer | LibraryFileTokenizer;

/** Writes its files into `folder`, which is made if it is missing. Throws `FileError`. */
export async function writeTokenizer(folder: string, tokenizer: WritableTokenizer): Promise<void> {
  const { model, config } = tokenizerFiles(tokenizer);
  await writeFileAtomic(join(folder, modelFile), `${JSON.stringify(model, null, 1)}\n`);
  await writeFileAtomic(join(folder, configFile), `${JSON.stringify(config, null, 1)}\n`);
  const generation = generationConfig(tokenizer);
  if (generation !== undefined)
    await writeFileAtomic(join(folder, generationFile), `${JSON.stringify(generation, null, 1)}\n`);
}

/** The contents of `tokenizer.json` and `tokenizer_config.json`. */
export function tokenizerFiles(tokenizer: WritableTokenizer): LibraryFileTokenizer["files"] {
  if ("files" in tokenizer) return tokenizer.files;
  return { model: tokenizerJson(tokenizer), config: tokenizerConfig };
}

/**
 * Reads the tokenizer in `folder`: ours, or any that `@huggingface/tokenizers` can read. `encode` adds nothing to a
 * text. A file that the library reads otherwise than models were trained with is refused, unless `idsMayDiffer`: where the
 * number of tokens alone is wanted, nearly the same number is good enough. Throws `FileError` or `DataFormatError`.
 */
export async function readTokenizer(
  folder: string,
  { idsMayDiffer = false }: Pick<LibraryReading, "idsMayDiffer"> = {},
): Promise<WritableTokenizer> {
  const file = join(folder, modelFile);
  const json = await readJson(file);
  const config = await readConfig(folder);
  const own = ownFormat.safeParse(json);
  if (own.success && isOwnConfig(config)) return fromOwnFormat(own.data);
  try {
    return libraryTokenizer(json as object, config, { file, ends: await readEnds(folder), idsMayDiffer });
  } catch (cause) {
    if (cause instanceof DataFormatError) throw cause;
    throw new DataFormatError(file, undefined, `expected a Hugging Face tokenizer: ${reasonOf(cause)}`, {
      cause,
    });
  }
}

/** Whether a configuration says what ours says, which knows no chat template. */
function isOwnConfig({ eos_token, pad_token, chat_template }: TokenizerConfig): boolean {
  return (
    (eos_token ?? endOfText) === endOfText && (pad_token ?? padding) === padding && chat_template == null
  );
}

function reasonOf(cause: unknown): string {
  if (cause instanceof z.ZodError) return z.prettifyError(cause);
  return cause instanceof Error ? cause.message : String(cause);
}

/** A template in a file of its own, as newer libraries write it, wins over the one in the configuration. */
async function readConfig(folder: string): Promise<TokenizerConfig> {
  const path = join(folder, configFile);
  const parsed = configFormat.safeParse((await exists(path)) ? await readJson(path) : {});
  if (!parsed.success) throw new DataFormatError(path, undefined, z.prettifyError(parsed.error));
  const config = parsed.data;
  const templatePath = join(folder, templateFile);
  if (!(await exists(templatePath))) return config;
  return { ...config, chat_template: await readText(templatePath) };
}

const generationFormat = z.looseObject({
  eos_token_id: z
    .union([z.int().transform((id) => [id]), z.array(z.int())])
    .nullish()
    .transform((ids) => ids ?? []),
});

/** All ids that end a text: those of `generation_config.json`, or where there is none, of the model's `config.json`. */
async function readEnds(folder: string): Promise<readonly number[]> {
  const generation = join(folder, generationFile);
  const path = (await exists(generation)) ? generation : join(folder, modelConfigFile);
  if (!(await exists(path))) return [];
  const parsed = generationFormat.safeParse(await readJson(path));
  if (parsed.success) return parsed.data.eos_token_id;
  throw new DataFormatError(path, undefined, z.prettifyError(parsed.error));
}

/** What `generation_config.json` says of a tokenizer with several ends; undefined where `config.json` says it all. */
export function generationConfig({
  endOfTextId,
  furtherEndIds,
  paddingId,
}: WritableTokenizer): object | undefined {
  if (furtherEndIds === undefined) return undefined;
  return { eos_token_id: [endOfTextId, ...furtherEndIds], pad_token_id: paddingId };
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

async function readJson(file: string): Promise<unknown> {
  const text = await readText(file);
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new DataFormatError(file, undefined, `expected JSON: ${(cause as Error).message}`, { cause });
  }
}

async function readText(file: string): Promise<string> {
  try {
    return await readFile(file, "utf8");
  } catch (cause) {
    throw fileError(`cannot read ${file}`, cause);
  }
}
