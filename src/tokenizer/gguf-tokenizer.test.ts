// The goldens of published tokenizers, put into the metadata of a GGUF file as the converter of llama.cpp does.
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { DataFormatError } from "../errors.ts";
import { tokenizerFromGguf } from "./gguf-tokenizer.ts";

interface TokenizerJson {
  readonly model: {
    readonly vocab: Readonly<Record<string, number>>;
    readonly merges: readonly (readonly string[])[];
  };
  readonly added_tokens: readonly {
    readonly id: number;
    readonly content: string;
    readonly special: boolean;
  }[];
}

const read = (path: string): unknown =>
  JSON.parse(
    readFileSync(fileURLToPath(new URL(`../../test/golden/tokenizer/${path}`, import.meta.url)), "utf8"),
  );

/** Metadata of the tokenizer `kind`, with changes; a value of undefined removes a field. */
function metadataOf(kind: string, pre: string, changes: Readonly<Record<string, unknown>> = {}) {
  const { model, added_tokens } = read(`${kind}/tokenizer.json`) as TokenizerJson;
  const tokens: string[] = [];
  const types: number[] = [];
  for (const [piece, id] of Object.entries(model.vocab)) tokens[id] = piece;
  for (const id of tokens.keys()) types[id] = 1;
  for (const { id, content, special } of added_tokens) {
    tokens[id] = content;
    types[id] = special ? 3 : 4;
  }
  const metadata = {
    "tokenizer.ggml.model": "gpt2",
    "tokenizer.ggml.pre": pre,
    "tokenizer.ggml.tokens": tokens,
    "tokenizer.ggml.token_type": types,
    "tokenizer.ggml.merges": model.merges.map((merge) => merge.join(" ")),
    "tokenizer.ggml.bos_token_id": 3,
    "tokenizer.ggml.eos_token_id": 2,
    ...changes,
  };
  return new Map(Object.entries(metadata).filter(([, value]) => value !== undefined));
}

describe.each([
  ["smollm2", "smollm"],
  ["llama3", "llama-bpe"],
  ["qwen2", "qwen2"],
])("the tokenizer of %s in a GGUF file", (kind, pre) => {
  test("gives the ids of the Rust library for every nasty text", () => {
    const tokenizer = tokenizerFromGguf(metadataOf(kind, pre), "model.gguf");
    const { cases } = read(`${kind}/cases.json`) as {
      cases: { text: string; ids: number[]; decoded: string }[];
    };
    for (const { text, ids, decoded } of cases) {
      expect({ text, ids: tokenizer.encode(text) }).toEqual({ text, ids });
      expect(tokenizer.decode(ids)).toBe(decoded);
    }
  });
});

describe("a tokenizer in a GGUF file", () => {
  const open = (pre: string, changes: Readonly<Record<string, unknown>> = {}) =>
    tokenizerFromGguf(metadataOf("llama3", pre, changes), "model.gguf");

  test("begins every text where the file says so, or where its kind does", () => {
    expect(open("llama-bpe").beginOfTextId).toBe(3);
    expect(open("llama-bpe", { "tokenizer.ggml.add_bos_token": false }).beginOfTextId).toBeUndefined();
    expect(open("qwen2").beginOfTextId).toBeUndefined();
    expect(open("qwen2", { "tokenizer.ggml.add_bos_token": true }).beginOfTextId).toBe(3);
  });

  test("ends texts and turns, and counts no token that is unused", () => {
    const metadata = metadataOf("llama3", "llama-bpe", {
      "tokenizer.ggml.eot_token_id": 4,
      "tokenizer.ggml.eom_token_id": 3,
    });
    const tokens = metadata.get("tokenizer.ggml.tokens") as string[];
    const types = metadata.get("tokenizer.ggml.token_type") as number[];
    const { vocabularySize } = open("llama-bpe");
    tokens.push("[PAD0]", "[PAD1]");
    types.push(5, 5);
    const tokenizer = tokenizerFromGguf(metadata, "model.gguf");
    expect(tokenizer).toMatchObject({ endOfTextId: 2, furtherEndIds: [4, 3], paddingId: 2, vocabularySize });
  });

  test.each([
    [{ "tokenizer.ggml.model": undefined }, /model\.gguf: it holds no tokenizer/],
    [{ "tokenizer.ggml.model": "llama" }, /of the kind "llama", only gpt2 .* is supported/],
    [{ "tokenizer.ggml.pre": undefined }, /tokenizer\.ggml\.pre is missing, only gpt-2, smollm/],
    [{ "tokenizer.ggml.pre": "tekken" }, /tokenizer\.ggml\.pre is "tekken", only gpt-2, smollm/],
    [{ "tokenizer.ggml.merges": undefined }, /tokenizer\.ggml\.merges is missing or no list of texts/],
    [{ "tokenizer.ggml.tokens": [1, 2] }, /tokenizer\.ggml\.tokens is missing or no list of texts/],
    [{ "tokenizer.ggml.eos_token_id": undefined }, /no token ends a text/],
  ])("with %j is refused", (changes, problem) => {
    const call = () => open("llama-bpe", changes);
    expect(call).toThrow(DataFormatError);
    expect(call).toThrow(problem);
  });
});
