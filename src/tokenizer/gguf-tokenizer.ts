/**
 * The tokenizer in a GGUF file's metadata, as the `tokenizer.json` it was made from: byte-level byte-pair encoding (kind
 * `gpt2`) with one of the known ways to cut text into words (`tokenizer.ggml.pre`). The file holds tokens, merges
 * and types; the patterns are known by the name alone.
 *
 * Not covered: SentencePiece, WordPiece and other kinds, other ways to cut; both are refused by name.
 */
import { DataFormatError } from "../errors.ts";
import { byteLevel, splittings } from "./gguf-splittings.ts";
import { configFormat, type LibraryFileTokenizer, libraryTokenizer } from "./library-tokenizer.ts";

export type GgufMetadata = ReadonlyMap<string, unknown>;

/** Kinds of tokens as numbered in the format. */
const tokenType = { unknown: 2, control: 3, userDefined: 4, unused: 5 } as const;

/** `file` is named in errors. Throws `DataFormatError`. */
export function tokenizerFromGguf(metadata: GgufMetadata, file: string): LibraryFileTokenizer {
  const refuse = (problem: string): DataFormatError => new DataFormatError(file, undefined, problem);
  const kind = metadata.get("tokenizer.ggml.model");
  if (kind === undefined) throw refuse("it holds no tokenizer (tokenizer.ggml.model is missing)");
  if (kind !== "gpt2")
    throw refuse(
      `its tokenizer is of the kind ${JSON.stringify(kind)}, only gpt2 (byte-pair encoding) is supported; load the model from a folder with tokenizer.json`,
    );
  const name = metadata.get("tokenizer.ggml.pre");
  const splitting = splittings[String(name)];
  if (!splitting)
    throw refuse(
      `tokenizer.ggml.pre is ${name === undefined ? "missing" : JSON.stringify(name)}, only ${Object.keys(splittings).join(", ")} are supported; load the model from a folder with tokenizer.json`,
    );
  const tokens = strings(metadata, "tokenizer.ggml.tokens", refuse);
  const merges = strings(metadata, "tokenizer.ggml.merges", refuse);
  const types = (metadata.get("tokenizer.ggml.token_type") ?? []) as readonly number[];
  const named = (key: string): string | undefined => tokens[metadata.get(`tokenizer.ggml.${key}`) as number];
  const end = named("eos_token_id");
  if (end === undefined) throw refuse("no token ends a text (tokenizer.ggml.eos_token_id)");
  const begin = named("bos_token_id");
  const hasBegin = metadata.get("tokenizer.ggml.add_bos_token") ?? splitting.hasBegin;
  const json = {
    version: "1.0",
    truncation: null,
    padding: null,
    added_tokens: addedTokens(tokens, types),
    normalizer: splitting.normalizer,
    pre_tokenizer: splitting.preTokenizer,
    post_processor: hasBegin && begin !== undefined ? beginProcessor(begin, tokens.indexOf(begin)) : null,
    decoder: byteLevel(true),
    model: bytePairModel({ tokens, merges, types }, splitting.ignoresMerges),
  };
  const config = configFormat.parse({
    tokenizer_class: "PreTrainedTokenizerFast",
    bos_token: begin,
    eos_token: end,
    pad_token: named("padding_token_id"),
    unk_token: named("unknown_token_id"),
    chat_template: metadata.get("tokenizer.chat_template"),
    clean_up_tokenization_spaces: false,
  });
  // Of a turn and of a message.
  const ends = ["eot_token_id", "eom_token_id"].map((key) => metadata.get(`tokenizer.ggml.${key}`));
  return libraryTokenizer(json, config, { file, ends: ends.filter((id) => typeof id === "number") });
}

function strings(
  metadata: GgufMetadata,
  key: string,
  refuse: (problem: string) => DataFormatError,
): readonly string[] {
  const value = metadata.get(key);
  if (Array.isArray(value) && value.every((item) => typeof item === "string")) return value;
  throw refuse(`${key} is missing or no list of texts`);
}

function bytePairModel(
  parts: {
    readonly tokens: readonly string[];
    readonly merges: readonly string[];
    readonly types: readonly number[];
  },
  ignoresMerges: boolean,
): object {
  const { tokens, merges, types } = parts;
  return {
    type: "BPE",
    dropout: null,
    unk_token: null,
    continuing_subword_prefix: null,
    end_of_word_suffix: null,
    fuse_unk: false,
    byte_fallback: false,
    ignore_merges: ignoresMerges,
    vocab: Object.fromEntries(
      tokens.flatMap((token, id) => (types[id] === tokenType.unused ? [] : [[token, id]])),
    ),
    merges: merges.map((merge) => merge.split(" ")),
  };
}

function addedTokens(tokens: readonly string[], types: readonly number[]): object[] {
  return tokens.flatMap((content, id) => {
    const isSpecial = types[id] === tokenType.control || types[id] === tokenType.unknown;
    if (!isSpecial && types[id] !== tokenType.userDefined) return [];
    const matching = { single_word: false, lstrip: false, rstrip: false, normalized: false };
    return [{ id, content, ...matching, special: isSpecial }];
  });
}

function beginProcessor(token: string, id: number): object {
  const begin = { SpecialToken: { id: token, type_id: 0 } };
  const text = (name: string, type: number): object => ({ Sequence: { id: name, type_id: type } });
  return {
    type: "TemplateProcessing",
    single: [begin, text("A", 0)],
    pair: [begin, text("A", 0), { SpecialToken: { id: token, type_id: 1 } }, text("B", 1)],
    special_tokens: { [token]: { id: token, ids: [id], tokens: [token] } },
  };
}
