/**
 * Handing a model on: weights and tokenizer written into a folder as other programs read them. All weights as Hugging
 * Face's libraries want them, one file of llama.cpp's, or adapters alone in the layout of PEFT.
 */
import { join } from "node:path";
import { writeFileAtomic } from "../shared/files.ts";
import { ggufTokenizer } from "../tokenizer/gguf-tokenizer-metadata.ts";
import { type WritableTokenizer, writeTokenizer } from "../tokenizer/tokenizer-file.ts";
import { writeModel } from "./checkpoint.ts";
import { writeGguf } from "./gguf-writer.ts";
import type { GgufWrittenType } from "./gguf-writer-blocks.ts";
import { ggufMetadata, ggufTensors } from "./gguf-writer-model.ts";
import { type AdapterConfig, writeAdapters } from "./lora-files.ts";
import type { ModelOptions } from "./model-options.ts";
import type { ParameterSet } from "./parameters.ts";
import type { FloatType } from "./tensor-encoding.ts";

export interface ExportedModel {
  readonly model: ModelOptions;
  readonly tokenizer: WritableTokenizer;
  readonly parameters: ParameterSet;
}

export interface ExportOptions<Type> {
  readonly type: Type;
  /** Stops the writing. */
  readonly signal?: AbortSignal;
}

/** Writes what `AutoModelForCausalLM` and `AutoTokenizer` of transformers open. Throws `FileError`. */
export async function exportHuggingFace(
  folder: string,
  exported: ExportedModel,
  { type, signal }: ExportOptions<FloatType>,
): Promise<void> {
  await writeModel(folder, { ...exported, dtype: type, ...(signal && { signal }) }, exported.parameters);
  await exportTokenizer(folder, exported.tokenizer);
}

/** Writes what `PeftModel` of PEFT opens beside the base, with the tokenizer. Throws `FileError`. */
export async function exportAdapters(
  folder: string,
  exported: {
    readonly config: AdapterConfig;
    readonly tokenizer: WritableTokenizer;
    readonly adapters: ParameterSet;
  },
): Promise<void> {
  await writeAdapters(folder, exported.config, exported.adapters);
  await exportTokenizer(folder, exported.tokenizer);
}

/** The tokenizer, and in `generation_config.json` every token that ends a text. */
async function exportTokenizer(folder: string, tokenizer: WritableTokenizer): Promise<void> {
  await writeTokenizer(folder, tokenizer);
  const { beginOfTextId, endOfTextId, furtherEndIds = [], paddingId } = tokenizer;
  const generation = {
    ...(beginOfTextId !== undefined && { bos_token_id: beginOfTextId }),
    eos_token_id: furtherEndIds.length === 0 ? endOfTextId : [endOfTextId, ...furtherEndIds],
    pad_token_id: paddingId,
  };
  const path = join(folder, "generation_config.json");
  await writeFileAtomic(path, `${JSON.stringify(generation, null, 2)}\n`);
}

/** Names in the metadata of a GGUF file. */
export interface GgufNames {
  readonly name: string;
  /** SPDX identifier; absent where it is not known. */
  readonly licence?: string;
}

/**
 * Writes what llama.cpp opens. Throws `ConfigError` for a tokenizer that the format has no name for, `FileError`.
 * @returns the tensors that are stored as another type than was asked for, vectors left out
 */
export async function exportGguf(
  path: string,
  exported: ExportedModel & { readonly names: GgufNames },
  { type, signal }: ExportOptions<GgufWrittenType>,
): Promise<readonly { readonly name: string; readonly type: GgufWrittenType }[]> {
  const { model, parameters, names } = exported;
  const tokenizer = ggufTokenizer(exported.tokenizer, model.vocabularySize);
  const tensors = ggufTensors(model, parameters, type);
  const metadata = ggufMetadata(model, { ...names, type, tokenizer });
  await writeGguf(path, { metadata, tensors }, signal);
  return tensors.filter((tensor) => tensor.type !== type && tensor.shape.length > 1);
}
