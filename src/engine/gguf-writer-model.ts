/**
 * A model as a GGUF file that llama.cpp loads: metadata and tensors as its converter names and orders them. What is
 * written is what `gguf-model.ts` and `gguf-names.ts` read. Vectors stay F32 whatever the type of the matrices.
 */
import type { ggufTokenizer } from "../tokenizer/gguf-tokenizer-metadata.ts";
import { ggufName, interleaveHalves, isInterleaved } from "./gguf-names.ts";
import type { GgufField, GgufTensor } from "./gguf-writer.ts";
import { type GgufWrittenType, ggufEncodings } from "./gguf-writer-blocks.ts";
import { headSize, type ModelFamily, type ModelOptions } from "./model-options.ts";
import type { Parameter, ParameterSet } from "./parameters.ts";
import { frequencyDivisor, rotaryFrequencies } from "./rotary-tables.ts";

/** Mistral models are of the architecture llama in GGUF. */
const architectures: Readonly<Record<ModelFamily, string>> = {
  llama: "llama",
  mistral: "llama",
  qwen2: "qwen2",
  qwen3: "qwen3",
};

/** llama.cpp's number of a file by the type of most weights. */
const fileTypes: Readonly<Record<GgufWrittenType, number>> = { F32: 0, F16: 1, Q4_0: 2, Q4_1: 3, Q8_0: 7 };

export interface GgufDescription {
  readonly name: string;
  /** SPDX identifier; absent where it is not known. */
  readonly licence?: string;
  readonly type: GgufWrittenType;
  readonly tokenizer: ReturnType<typeof ggufTokenizer>;
}

/** All fields of the file, in the order of llama.cpp's converter. */
export function ggufMetadata(model: ModelOptions, described: GgufDescription): Map<string, GgufField> {
  const { name, licence, type } = described;
  const architecture = architectureOf(model);
  const fields = new Map<string, GgufField>([
    ["general.architecture", { type: "string", value: architecture }],
    ["general.type", { type: "string", value: "model" }],
    ["general.name", { type: "string", value: name }],
    ["general.file_type", { type: "uint32", value: fileTypes[type] }],
    ["general.quantization_version", { type: "uint32", value: 2 }],
  ]);
  if (licence !== undefined) fields.set("general.license", { type: "string", value: licence });
  for (const [key, value] of Object.entries(shapeFields(model)))
    fields.set(`${architecture}.${key}`, { type: "uint32", value });
  fields.set(`${architecture}.attention.layer_norm_rms_epsilon`, {
    type: "float32",
    value: model.rmsEpsilon,
  });
  fields.set(`${architecture}.rope.freq_base`, { type: "float32", value: model.ropeBase });
  addTokenizer(fields, described.tokenizer);
  return fields;
}

function architectureOf({ family }: ModelOptions): string {
  return architectures[family ?? "llama"];
}

function shapeFields(model: ModelOptions): Record<string, number> {
  const size = headSize(model);
  return {
    block_count: model.layers,
    context_length: model.contextLength,
    embedding_length: model.width,
    feed_forward_length: model.feedForward,
    "attention.head_count": model.heads,
    "attention.head_count_kv": model.keyValueHeads,
    "attention.key_length": size,
    "attention.value_length": size,
    "rope.dimension_count": size,
    vocab_size: model.vocabularySize,
  };
}

function addTokenizer(fields: Map<string, GgufField>, tokenizer: GgufDescription["tokenizer"]): void {
  const { splitting, tokens, types, merges, ids, addsBegin, chatTemplate } = tokenizer;
  const add = (key: string, field: GgufField): unknown => fields.set(`tokenizer.ggml.${key}`, field);
  add("model", { type: "string", value: "gpt2" });
  add("pre", { type: "string", value: splitting });
  add("tokens", { type: "strings", value: tokens });
  add("token_type", { type: "int32s", value: types });
  add("merges", { type: "strings", value: merges });
  for (const [key, value] of ids) add(key, { type: "uint32", value });
  add("add_bos_token", { type: "bool", value: addsBegin });
  if (chatTemplate !== undefined)
    fields.set("tokenizer.chat_template", { type: "string", value: chatTemplate });
}

/** All tensors, in the order of the network; Llama 3's divisors of the frequencies first. */
export function ggufTensors(
  model: ModelOptions,
  parameters: ParameterSet,
  type: GgufWrittenType,
): GgufTensor[] {
  const tensors = [...parameters].map(
    ([name, parameter]): GgufTensor => ({
      name: ggufName(name),
      shape: parameter.shape,
      type: typeOf(name, parameter, type),
      values: () => ordered(model, name, parameter).data,
    }),
  );
  const { ropeScaling, ...plain } = model;
  if (ropeScaling === undefined) return tensors;
  const frequencies = rotaryFrequencies(plain);
  const divisors = frequencies.map((frequency) => frequencyDivisor(frequency, ropeScaling));
  const factors: GgufTensor = {
    name: "rope_freqs.weight",
    shape: [divisors.length],
    type: "F32",
    values: () => divisors,
  };
  return [factors, ...tensors];
}

function ordered(model: ModelOptions, name: string, parameter: Parameter): Parameter {
  if (!isInterleaved(architectureOf(model), name)) return parameter;
  return interleaveHalves(parameter, name.includes("q_proj") ? model.heads : model.keyValueHeads);
}

/**
 * The type a tensor is stored as: vectors F32; embeddings and output layer at least Q8_0, which decide most about
 * a small model; matrices whose rows are no whole blocks F16, as llama.cpp does.
 */
function typeOf(name: string, { shape }: Parameter, type: GgufWrittenType): GgufWrittenType {
  if (shape.length === 1) return "F32";
  if ((shape[1] as number) % ggufEncodings[type].size !== 0) return "F16";
  const isTable = name === "model.embed_tokens.weight" || name === "lm_head.weight";
  return isTable && (type === "Q4_0" || type === "Q4_1") ? "Q8_0" : type;
}
