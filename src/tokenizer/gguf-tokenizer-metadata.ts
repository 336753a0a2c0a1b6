/**
 * A tokenizer as the metadata of a GGUF file, the way llama.cpp's converter writes it: what `tokenizerFromGguf` reads.
 * Only byte-level byte-pair encoding can be written, and only where text is cut in a way that GGUF has a name for.
 *
 * What the format has no place for is lost: llama.cpp does not normalise text (a Qwen's NFC), and knows two further
 * tokens that end a text, one for a turn and one for a message.
 */
import { z } from "zod";
import { ConfigError } from "../errors.ts";
import { canonicalJson } from "../shared/hash.ts";
import { splittings } from "./gguf-splittings.ts";
import { configFormat } from "./library-tokenizer.ts";
import { tokenizerFiles, type WritableTokenizer } from "./tokenizer-file.ts";

export interface GgufTokenizer {
  /** The name of the way to cut text, such as `smollm`. */
  readonly splitting: string;
  /** One for each row of the embedding table. */
  readonly tokens: readonly string[];
  /** 1 normal, 3 control, 4 user-defined, 5 unused. */
  readonly types: readonly number[];
  /** Two pieces with a space between. */
  readonly merges: readonly string[];
  /** Fields such as `eos_token_id`, without the prefix `tokenizer.ggml.`. */
  readonly ids: ReadonlyMap<string, number>;
  /** Whether `bos_token_id` begins every text. */
  readonly addsBegin: boolean;
  readonly chatTemplate: string | undefined;
}

const tokenType = { normal: 1, control: 3, userDefined: 4, unused: 5 } as const;

const bytePairFormat = z.looseObject({
  normalizer: z.unknown(),
  pre_tokenizer: z.unknown(),
  added_tokens: z
    .array(z.looseObject({ id: z.int(), content: z.string(), special: z.boolean() }))
    .default([]),
  model: z.looseObject({
    type: z.literal("BPE"),
    byte_fallback: z.literal(false).nullish(),
    ignore_merges: z.boolean().nullish(),
    vocab: z.record(z.string(), z.int()),
    merges: z.array(z.union([z.string(), z.tuple([z.string(), z.string()])])),
  }),
});

/** Throws `ConfigError` for a tokenizer that GGUF has no name for. */
export function ggufTokenizer(tokenizer: WritableTokenizer, rows: number): GgufTokenizer {
  const files = tokenizerFiles(tokenizer);
  const parsed = bytePairFormat.safeParse(files.model);
  if (!parsed.success) throw unnamed("it is no byte-level byte-pair encoding");
  const { model, added_tokens } = parsed.data;
  const splitting = findSplitting(parsed.data);
  const tokens = Array.from({ length: rows }, (_, id) => `[PAD${id}]`);
  const types: number[] = tokens.map(() => tokenType.unused);
  for (const [piece, id] of Object.entries(model.vocab)) {
    tokens[id] = piece;
    types[id] = tokenType.normal;
  }
  for (const { id, content, special } of added_tokens) {
    tokens[id] = content;
    types[id] = special ? tokenType.control : tokenType.userDefined;
  }
  return {
    splitting,
    tokens,
    types,
    merges: model.merges.map((merge) => (typeof merge === "string" ? merge : merge.join(" "))),
    ids: namedIds(tokenizer, tokens, configFormat.parse(files.config)),
    addsBegin: tokenizer.beginOfTextId !== undefined,
    chatTemplate: tokenizer.chat?.template,
  };
}

function unnamed(problem: string): ConfigError {
  return new ConfigError(
    `the tokenizer cannot be written into a GGUF file: ${problem}; hand the model on with --to hf`,
  );
}

function namedIds(
  { endOfTextId, furtherEndIds = [], beginOfTextId, paddingId }: WritableTokenizer,
  tokens: readonly string[],
  config: z.output<typeof configFormat>,
): Map<string, number> {
  const idOf = (token: string | null | undefined): number | undefined => {
    const id = token == null ? -1 : tokens.indexOf(token);
    return id === -1 ? undefined : id;
  };
  const ids: readonly (readonly [string, number | undefined])[] = [
    ["bos_token_id", beginOfTextId ?? idOf(config.bos_token)],
    ["eos_token_id", endOfTextId],
    ["unknown_token_id", idOf(config.unk_token)],
    ["padding_token_id", paddingId],
    ["eot_token_id", furtherEndIds[0]],
    ["eom_token_id", furtherEndIds[1]],
  ];
  return new Map(ids.flatMap(([name, id]) => (id === undefined ? [] : [[name, id] as const])));
}

/** The name of the way a file cuts text. */
function findSplitting({ normalizer, pre_tokenizer, model }: z.output<typeof bytePairFormat>): string {
  const shown = canonicalJson([essence(normalizer), essence(pre_tokenizer), model.ignore_merges === true]);
  for (const [name, splitting] of Object.entries(splittings)) {
    const { preTokenizer, ignoresMerges } = splitting;
    const own = canonicalJson([essence(splitting.normalizer), essence(preTokenizer), ignoresMerges]);
    if (shown === own) return name;
  }
  throw unnamed(
    `text is cut in a way that has no name there (${JSON.stringify(pre_tokenizer).slice(0, 120)}); the names are ${Object.keys(splittings).join(", ")}`,
  );
}

/** A component without the fields that change no id: offsets, and a step that is alone in its sequence. */
function essence(component: unknown): unknown {
  if (Array.isArray(component)) return component.map(essence);
  if (component === null || component === undefined || typeof component !== "object")
    return component ?? null;
  const { trim_offsets: _, ...fields } = component as Record<string, unknown>;
  const steps = fields.pretokenizers ?? fields.normalizers;
  if (fields.type === "Sequence" && Array.isArray(steps) && steps.length === 1) return essence(steps[0]);
  return Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, essence(value)]));
}
