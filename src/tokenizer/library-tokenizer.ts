/**
 * A published tokenizer, run by `@huggingface/tokenizers`, from the contents of `tokenizer.json` and
 * `tokenizer_config.json`. Goldens hold it to the ids of the Rust library; one difference is known: bytes that are a
 * last resort and spell U+FEFF are dropped when decoded.
 */
import { Tokenizer as LibraryTokenizer } from "@huggingface/tokenizers";
import { z } from "zod";
import { DataFormatError } from "../errors.ts";
import { canonicalJson, sha256 } from "../shared/hash.ts";
import { disputedSpace, findUnfaithful, type Step, spellSteps, spellWords } from "./library-spelling.ts";
import type { ChatFormat, Tokenizer } from "./tokenizer.ts";

/** A tokenizer that the library runs; it is written as it was read, with the tokens that end and fill a text named. */
export interface LibraryFileTokenizer extends Tokenizer {
  /** The content of both files. */
  readonly files: { readonly model: object; readonly config: object };
}

/** A token is named by its text, or by an object that holds it. */
const namedToken = z
  .union([z.string(), z.object({ content: z.string() }).transform((token) => token.content)])
  .nullish();

/** Several templates have names; the one for chats is `default`. */
const chatTemplate = z
  .union([
    z.string(),
    z
      .array(z.looseObject({ name: z.string(), template: z.string() }))
      .transform((templates) => templates.find(({ name }) => name === "default")?.template),
  ])
  .nullish();

export const configFormat = z.looseObject({
  bos_token: namedToken,
  eos_token: namedToken,
  pad_token: namedToken,
  unk_token: namedToken,
  chat_template: chatTemplate,
});
export type TokenizerConfig = z.output<typeof configFormat>;

const modelFormat = z.looseObject({
  added_tokens: z.array(z.looseObject({ id: z.int(), content: z.string() })).default([]),
});

export interface LibraryReading {
  /** Named in errors. */
  readonly file: string;
  /** All ids that end a text, as far as they are known. */
  readonly ends?: readonly number[];
  /** True: a file is read too whose texts get other ids here than from the Rust library, for use of their number alone. */
  readonly idsMayDiffer?: boolean;
}

/** Throws `DataFormatError`, or whatever the library throws at a file it cannot read. */
export function libraryTokenizer(
  json: object,
  config: TokenizerConfig,
  { file, ends = [], idsMayDiffer = false }: LibraryReading,
): LibraryFileTokenizer {
  const added = modelFormat.parse(json).added_tokens;
  const open = (model: object): LibraryTokenizer =>
    new LibraryTokenizer(model, { ...config, clean_up_tokenization_spaces: false });
  if (!idsMayDiffer) requireFaithful(json as Step, file);
  const spelt = spellSteps(json);
  const library = open(spelt);
  let careful: LibraryTokenizer | undefined;
  const libraryFor = (text: string): LibraryTokenizer => {
    if (!disputedSpace.test(text)) return library;
    careful ??= open(spellWords(spelt));
    return careful;
  };
  const idOf = (token: string): number => {
    const id = library.token_to_id(token);
    if (id !== undefined) return id;
    const problem = `its configuration names ${JSON.stringify(token)}, which has no id`;
    throw new DataFormatError(file, undefined, problem);
  };
  const end = config.eos_token ?? commonEndTokens.find((token) => library.token_to_id(token) !== undefined);
  if (end == null)
    throw new DataFormatError(
      file,
      undefined,
      'no token ends a text; name it as "eos_token" in tokenizer_config.json',
    );
  const endOfTextId = idOf(end);
  const beginOfTextId = findBegin(library);
  const furtherEndIds = ends.filter((id) => id !== endOfTextId);
  const chat = chatFormat(config, end);
  return {
    files: {
      model: json,
      config: { ...config, ...plainClass(config), eos_token: end, pad_token: config.pad_token ?? end },
    },
    hash: sha256(canonicalJson({ json, endOfTextId })),
    vocabularySize: [...library.get_vocab().values()].reduce((most, id) => Math.max(most, id + 1), 0),
    endOfTextId,
    paddingId: config.pad_token == null ? endOfTextId : idOf(config.pad_token),
    ...(beginOfTextId !== undefined && { beginOfTextId }),
    ...(furtherEndIds.length > 0 && { furtherEndIds }),
    ...(chat && { chat }),
    specialTokens: added.map((token) => token.content).filter((token) => token.trim() !== ""),
    encode: (text) => libraryFor(text).encode(text, { add_special_tokens: false }).ids,
    decode: (tokens) =>
      tokens.length === 0
        ? ""
        : library.decode([...tokens], { skip_special_tokens: false, clean_up_tokenization_spaces: false }),
  };
}

/**
 * The class under which every version of transformers reads the file as it is. Version 5 makes tokenizers of Llama's first class
 * anew, with other ids at leading spaces and after special tokens than models were trained with.
 */
function plainClass({ tokenizer_class }: TokenizerConfig): object {
  const isMadeAnew = /^(Code)?LlamaTokenizer(Fast)?$/.test(String(tokenizer_class));
  return isMadeAnew ? { tokenizer_class: "PreTrainedTokenizerFast" } : {};
}

/** Refuses a file that this library would read otherwise than the Rust library, without an error. */
function requireFaithful(json: Step, file: string): void {
  const problem = findUnfaithful(json);
  if (problem === undefined) return;
  throw new DataFormatError(
    file,
    undefined,
    `${problem}, which is not supported: texts would get other ids than the model was trained on; use a model with another tokenizer`,
  );
}

const commonEndTokens = ["<|im_end|>", "<|eot_id|>", "<|endoftext|>", "</s>"];

/** The id before a text where the file's own rules put exactly one there. */
function findBegin(library: LibraryTokenizer): number | undefined {
  const plain: readonly number[] = library.encode("a", { add_special_tokens: false }).ids;
  const full: readonly number[] = library.encode("a", { add_special_tokens: true }).ids;
  const isBefore = full.length > plain.length && plain.every((id, i) => full[i + 1] === id);
  return isBefore ? full[0] : undefined;
}

function chatFormat(config: TokenizerConfig, end: string): ChatFormat | undefined {
  if (config.chat_template == null) return undefined;
  const named = ["bos_token", "eos_token", "pad_token", "unk_token"].flatMap((name) => {
    const token = config[name];
    return typeof token === "string" ? [[name, token]] : [];
  });
  const specialTokens = { eos_token: end, ...Object.fromEntries(named) };
  return { template: config.chat_template, specialTokens };
}
