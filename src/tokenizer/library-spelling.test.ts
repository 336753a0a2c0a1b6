// Steps of a tokenizer.json, spelt out for the library, against the Rust library: test/golden/tokenizer/splitting.json
// holds steps, texts, their pieces, and make_splitting_golden.py asked for them.
import { readFileSync } from "node:fs";
import * as library from "@huggingface/tokenizers";
import { describe, expect, test } from "vitest";
import { findUnfaithful, type Step, spellSteps, spellWords } from "./library-spelling.ts";

interface Golden {
  readonly texts: readonly string[];
  readonly steps: readonly { readonly step: Step; readonly pieces: readonly (readonly string[])[] }[];
}

const golden = JSON.parse(
  readFileSync(new URL("../../test/golden/tokenizer/splitting.json", import.meta.url), "utf8"),
) as Golden;

/** Exported by the library, but not declared in its types. */
const { SequenceNormalizer, SequencePreTokenizer } = library as unknown as {
  SequenceNormalizer: new (config: object) => { normalize(text: string): string };
  SequencePreTokenizer: new (config: object) => { pre_tokenize(text: string): string[] };
};

/** What the library makes of a text in one spelt step. */
function run(step: Step, text: string): string[] {
  if (step.type !== "Strip") {
    const file = spellWords(spellSteps({ pre_tokenizer: step }));
    return new SequencePreTokenizer({ pretokenizers: [file.pre_tokenizer] }).pre_tokenize(text);
  }
  const file = spellSteps({ normalizer: step });
  return [new SequenceNormalizer({ normalizers: [file.normalizer] }).normalize(text)];
}

test.each(golden.steps.map(({ step, pieces }) => [JSON.stringify(step), step, pieces] as const))(
  "%s cuts as the Rust library does",
  (_name, step, pieces) => {
    for (const [i, text] of golden.texts.entries())
      expect({ text, pieces: run(step, text).filter((piece) => piece !== "") }).toEqual({
        text,
        pieces: pieces[i]?.filter((piece) => piece !== ""),
      });
  },
);

describe("a file that the library would read otherwise is refused by name", () => {
  const bytePair = { type: "BPE", vocab: {}, merges: [] };
  test.each<[string, Step]>([
    ["WordLevel", { model: { type: "WordLevel" } }],
    ["continuing_subword_prefix", { model: { ...bytePair, continuing_subword_prefix: "##" } }],
    ["byte_fallback", { model: { type: "Unigram", byte_fallback: true } }],
    ["single_word", { model: bytePair, added_tokens: [{ content: "x", single_word: true }] }],
    [
      "Precompiled",
      { model: bytePair, normalizer: { type: "Sequence", normalizers: [{ type: "Precompiled" }] } },
    ],
    [
      "fuse_unk",
      { model: { ...bytePair, unk_token: "<unk>", fuse_unk: true }, pre_tokenizer: { type: "Whitespace" } },
    ],
  ])("%s", (name, file) => expect(findUnfaithful(file)).toContain(name));

  test("what the families use is not", () => {
    const pieces = { ...bytePair, unk_token: "<unk>", fuse_unk: true, byte_fallback: true };
    expect(findUnfaithful({ model: pieces, pre_tokenizer: { type: "Metaspace" } })).toBeUndefined();
    const bytes = { model: { ...pieces, byte_fallback: false }, pre_tokenizer: { type: "ByteLevel" } };
    expect(findUnfaithful(bytes)).toBeUndefined();
    expect(findUnfaithful({ model: { ...bytePair, continuing_subword_prefix: "" } })).toBeUndefined();
  });
});
