/**
 * A model on disk, whatever its format: a folder as Hugging Face's libraries write it, a GGUF file, a folder that holds
 * one, or a folder of adapters as PEFT writes it, which leads to the model they belong to. Opening reads headers only, so
 * that a model can be described without its weights.
 */
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { CheckpointError, FileError } from "../errors.ts";
import { exists, fileError } from "../shared/files.ts";
import type { HubOptions } from "../shared/hub.ts";
import { tokenizerFromGguf } from "../tokenizer/gguf-tokenizer.ts";
import { readTokenizer, type WritableTokenizer } from "../tokenizer/tokenizer-file.ts";
import { configFile, readModelConfig } from "./checkpoint.ts";
import { GgufFile } from "./gguf.ts";
import { modelFromGguf } from "./gguf-model.ts";
import { hashParameters, locateBase, requireSameShape, requireSameWeights } from "./lora-base.ts";
import {
  type AdapterConfig,
  adapterBytes,
  isAdapterFolder,
  readAdapterConfig,
  readAdapters,
} from "./lora-files.ts";
import type { ModelOptions } from "./model-options.ts";
import type { Parameter } from "./parameters.ts";
import { checkTensors, readParameters } from "./read-parameters.ts";
import { openWeights } from "./sharded-safetensors.ts";
import type { TensorSource } from "./tensor-file.ts";

/** An open model; close it after use. */
export interface ModelFiles {
  /** The folder or GGUF file. */
  readonly path: string;
  readonly format: "safetensors" | "gguf";
  readonly model: ModelOptions;
  /** Type that most weights are stored in, such as BF16 or Q4_1. */
  readonly dtype: string;
  /** Size of the files with weights. */
  readonly bytes: number;
  /** The model's own tokenizer. Throws `DataFormatError`, `FileError`, or `CheckpointError` where it is another model's. */
  readTokenizer(): Promise<WritableTokenizer>;
  /** All weights as float32; adapters are merged into them. */
  readParameters(): Promise<Map<string, Parameter>>;
  /** Where `path` holds adapters: they, and the model they belong to, apart. */
  readonly adapters?: AdapterFiles;
  close(): Promise<void>;
}

export interface AdapterFiles {
  readonly config: AdapterConfig;
  /** The weights without the adapters. Throws `CheckpointError` where they are not those the adapters were trained on. */
  readBase(): Promise<Map<string, Parameter>>;
  readAdapters(): Promise<Map<string, Parameter>>;
}

/**
 * Opens the model at `path` and checks its headers; `hub` is where the model of adapters is fetched from that is not
 * here. Throws `CheckpointError` or `FileError`.
 */
export async function openModelFiles(path: string, hub?: HubOptions): Promise<ModelFiles> {
  if (await isAdapterFolder(path)) return await openAdapters(path, hub);
  const gguf = await findGguf(path);
  return gguf === undefined ? await openFolder(path) : await openGguf(gguf);
}

/** The GGUF file that `path` is or, where it has no `config.json`, holds. */
async function findGguf(path: string): Promise<string | undefined> {
  let isFile: boolean;
  try {
    isFile = (await stat(path)).isFile();
  } catch (cause) {
    throw fileError(`cannot read ${path}`, cause);
  }
  if (isFile) return path;
  if (await exists(join(path, configFile))) return undefined;
  const found = (await readdir(path)).filter((name) => name.endsWith(".gguf")).sort();
  if (found.length === 1) return join(path, found[0] as string);
  if (found.length > 1)
    throw new FileError(`${path} holds ${found.length} GGUF files (${found.join(", ")}); name one of them`);
  const advice = (await exists(join(path, "checkpoints")))
    ? "it is a run; name one of the folders in its checkpoints"
    : "give the folder or file of a model";
  throw new FileError(`${path} holds no model: neither ${configFile} nor a .gguf file; ${advice}`);
}

async function openFolder(path: string): Promise<ModelFiles> {
  const model = await readModelConfig(path);
  const source = await openWeights(path);
  return await describe(source, {
    path,
    format: "safetensors",
    model,
    readTokenizer: () => readTokenizer(path),
  });
}

async function openGguf(path: string): Promise<ModelFiles> {
  const source = await GgufFile.open(path);
  let model: ModelOptions;
  try {
    model = await modelFromGguf(source);
  } catch (error) {
    await source.close();
    throw error;
  }
  return await describe(source, {
    path,
    format: "gguf",
    model,
    readTokenizer: async () => tokenizerFromGguf(source.metadata, path),
  });
}

async function openAdapters(path: string, hub: HubOptions | undefined): Promise<ModelFiles> {
  const config = await readAdapterConfig(path);
  const location = await locateBase(path, config.location, hub);
  if (await isAdapterFolder(location))
    throw new CheckpointError(
      `${path} holds adapters for ${location}, which holds adapters itself; merge those into a model first`,
    );
  const base = await openModelFiles(location);
  const { model } = base;
  let bytes = base.bytes;
  try {
    await requireSameShape(path, { path: location, model });
    bytes += await adapterBytes(path);
  } catch (error) {
    await base.close();
    throw error;
  }
  const readBase = async (): Promise<Map<string, Parameter>> => {
    const parameters = await base.readParameters();
    await requireSameWeights(path, { path: location, hash: () => hashParameters(parameters) });
    return parameters;
  };
  const ownAdapters = (): Promise<Map<string, Parameter>> => readAdapters(path, model, config.lora);
  return {
    ...base,
    path,
    bytes,
    readTokenizer: async () => {
      if (!(await exists(join(path, "tokenizer.json")))) return await base.readTokenizer();
      const tokenizer = await readTokenizer(path);
      requireOwnTokenizer(path, model, tokenizer);
      return tokenizer;
    },
    readParameters: async () => {
      // It needs the tensor runtime, which describing a model does without.
      const { mergeAdapters } = await import("./lora-merge.ts");
      const setting = { model, lora: config.lora, threads: 1 };
      return await mergeAdapters(await readBase(), await ownAdapters(), setting);
    },
    adapters: { config, readBase, readAdapters: ownAdapters },
  };
}

async function describe(
  source: TensorSource,
  described: Pick<ModelFiles, "path" | "format" | "model" | "readTokenizer">,
): Promise<ModelFiles> {
  const { path, model } = described;
  try {
    checkTensors(model, source);
  } catch (error) {
    await source.close();
    throw error;
  }
  return {
    ...described,
    dtype: mostCommonType(source),
    bytes: source.bytes,
    readTokenizer: async () => {
      const tokenizer = await described.readTokenizer();
      requireOwnTokenizer(path, model, tokenizer);
      return tokenizer;
    },
    readParameters: () => readParameters(model, source),
    close: () => source.close(),
  };
}

/** Published tables are padded to a round number of rows, by some hundreds of 150,000; never by a tenth. */
const leastShare = 0.9;

/** Refuses the tokenizer of another model: ids without a row in the table, or far fewer ids than rows. */
export function requireOwnTokenizer(
  path: string,
  model: ModelOptions,
  { vocabularySize }: Pick<WritableTokenizer, "vocabularySize">,
): void {
  if (vocabularySize > model.vocabularySize || vocabularySize < leastShare * model.vocabularySize)
    throw new CheckpointError(
      `${path}: the tokenizer has ${vocabularySize} ids, the model ${model.vocabularySize}; use the tokenizer that belongs to the model`,
    );
}

/** By the number of weights that are stored so. */
function mostCommonType({ tensors }: TensorSource): string {
  const counts = new Map<string, number>();
  for (const { dtype, shape } of tensors.values())
    counts.set(dtype, (counts.get(dtype) ?? 0) + shape.reduce((a, b) => a * b, 1));
  return [...counts].reduce((most, entry) => (entry[1] > most[1] ? entry : most), ["none", 0])[0];
}
