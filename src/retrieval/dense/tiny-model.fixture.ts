/**
 * A model folder small enough to work out by hand: a WordPiece tokenizer of a few words, and an ONNX graph that looks
 * each token up in a table. As an encoder it gives the rows (batch, tokens, 4); as a cross-encoder it gives for each
 * pair the sum of the ids of its second text over 100.
 */
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";

/** Ids are places in this list. The tokenizer knows query:, passage: as two words each. */
export const words = [
  "[PAD]",
  "[UNK]",
  "[CLS]",
  "[SEP]",
  "query",
  "passage",
  ":",
  "red",
  "green",
  "blue",
  "##ish",
];

/** The vector of a token: its id, 1, the id's square over 100, and 0. */
export const vectorOf = (id: number): number[] => [id, 1, Math.fround(id ** 2 / 100), 0];

const special = (content: string, id: number) => ({
  id,
  content,
  single_word: false,
  lstrip: false,
  rstrip: false,
  normalized: false,
  special: true,
});
const token = (id: string, type_id: number) => ({ SpecialToken: { id, type_id } });
const text = (id: string, type_id: number) => ({ Sequence: { id, type_id } });

/** Truncation and padding are switched on, as in many files of the hub. */
const tokenizer = {
  version: "1.0",
  truncation: { direction: "Right", max_length: 4, strategy: "LongestFirst", stride: 0 },
  padding: {
    strategy: { Fixed: 16 },
    direction: "Right",
    pad_to_multiple_of: null,
    pad_id: 0,
    pad_type_id: 0,
    pad_token: "[PAD]",
  },
  added_tokens: words.slice(0, 4).map(special),
  normalizer: {
    type: "BertNormalizer",
    clean_text: true,
    handle_chinese_chars: true,
    strip_accents: null,
    lowercase: true,
  },
  pre_tokenizer: { type: "BertPreTokenizer" },
  post_processor: {
    type: "TemplateProcessing",
    single: [token("[CLS]", 0), text("A", 0), token("[SEP]", 0)],
    pair: [token("[CLS]", 0), text("A", 0), token("[SEP]", 0), text("B", 1), token("[SEP]", 1)],
    special_tokens: {
      "[CLS]": { id: "[CLS]", ids: [2], tokens: ["[CLS]"] },
      "[SEP]": { id: "[SEP]", ids: [3], tokens: ["[SEP]"] },
    },
  },
  decoder: { type: "WordPiece", prefix: "##", cleanup: true },
  model: {
    type: "WordPiece",
    unk_token: "[UNK]",
    continuing_subword_prefix: "##",
    max_input_chars_per_word: 100,
    vocab: Object.fromEntries(words.map((word, id) => [word, id])),
  },
};

const FLOAT = 1;
const INT64 = 7;

/** Writes the folder, whose name decides as which known model it is used. `spoilt` gives a token another first number. */
export async function writeTinyModel(
  folder: string,
  kind: "encoder" | "cross-encoder",
  spoilt?: { readonly id: number; readonly value: number },
): Promise<string> {
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, "tokenizer.json"), JSON.stringify(tokenizer));
  const table = Float32Array.from(words.flatMap((_, id) => vectorOf(id)));
  if (spoilt) table[4 * spoilt.id] = spoilt.value;
  const bytes = kind === "encoder" ? encoderGraph(table) : crossEncoderGraph();
  await writeFile(join(folder, "model.onnx"), await bytes);
  return folder;
}

async function encoderGraph(table: Float32Array): Promise<Uint8Array> {
  return await modelBytes({
    node: [{ opType: "Gather", input: ["table", "input_ids"], output: ["last_hidden_state"] }],
    initializer: [{ name: "table", dataType: FLOAT, dims: [words.length, 4], floatData: [...table] }],
    input: ["input_ids", "attention_mask"].map((name) => tensorInfo(name, INT64, ["b", "l"])),
    output: [tensorInfo("last_hidden_state", FLOAT, ["b", "l", 4])],
  });
}

async function crossEncoderGraph(): Promise<Uint8Array> {
  return await modelBytes({
    node: [
      { opType: "Mul", input: ["input_ids", "token_type_ids"], output: ["second"] },
      {
        opType: "Cast",
        input: ["second"],
        output: ["numbers"],
        attribute: [{ name: "to", type: 2, i: FLOAT }],
      },
      { opType: "ReduceSum", input: ["numbers", "axis"], output: ["sum"] },
      { opType: "Div", input: ["sum", "hundred"], output: ["logits"] },
    ],
    initializer: [
      { name: "axis", dataType: INT64, dims: [1], int64Data: [1] },
      { name: "hundred", dataType: FLOAT, dims: [], floatData: [100] },
    ],
    input: ["input_ids", "token_type_ids"].map((name) => tensorInfo(name, INT64, ["b", "l"])),
    output: [tensorInfo("logits", FLOAT, ["b", 1])],
  });
}

async function modelBytes(graph: object): Promise<Uint8Array> {
  const { onnx } = (await import("onnx-proto")).default;
  const opsetImport = [{ domain: "", version: 18 }];
  const model = onnx.ModelProto.fromObject({ irVersion: 9, opsetImport, graph: { name: "tiny", ...graph } });
  return onnx.ModelProto.encode(model).finish();
}

function tensorInfo(name: string, elemType: number, sizes: readonly (number | string)[]): object {
  const dim = sizes.map((size) => (typeof size === "number" ? { dimValue: size } : { dimParam: size }));
  return { name, type: { tensorType: { elemType, shape: { dim } } } };
}
