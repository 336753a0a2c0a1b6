/**
 * A GGUF file as llama.cpp writes it for llama, qwen2 and qwen3, seen as a Hugging Face model: tensors under
 * Hugging Face's names, llama's queries and keys in Hugging Face's order of rows (`gguf-names.ts`), all as float32.
 * What the metadata mean is in `gguf-model.ts`.
 */
import { assert, CheckpointError } from "../errors.ts";
import { type GgufHeader, type GgufValue, readGgufHeader } from "./gguf-header.ts";
import { huggingFaceName, isInterleaved, separateHalves } from "./gguf-names.ts";
import { ggufFormats } from "./gguf-quantization.ts";
import type { Parameter } from "./parameters.ts";
import { type BlockFormat, OpenFile, type TensorEntry, type TensorSource } from "./tensor-file.ts";

export class GgufFile implements TensorSource {
  readonly path: string;
  readonly metadata: ReadonlyMap<string, GgufValue>;
  /** By Hugging Face's names; `rope_freqs.weight`, which is none of its parameters, is apart. */
  readonly tensors: ReadonlyMap<string, TensorEntry>;
  readonly bytes: number;
  /** What Llama 3's frequencies are divided by, (headDim / 2), where the file holds it. */
  readonly ropeFactors: TensorEntry | undefined;
  readonly #file: OpenFile;

  private constructor(file: OpenFile, { metadata, tensors }: GgufHeader) {
    this.path = file.path;
    this.bytes = file.size;
    this.metadata = metadata;
    this.ropeFactors = tensors.get("rope_freqs.weight");
    this.tensors = renamed(file.path, tensors);
    this.#file = file;
  }

  /** Opens a file and checks its header; close it after use. Throws `CheckpointError` or `FileError`. */
  static async open(path: string): Promise<GgufFile> {
    const file = await OpenFile.open(path);
    try {
      return new GgufFile(file, await readGgufHeader(file));
    } catch (error) {
      await file.close();
      throw error;
    }
  }

  async read(name: string): Promise<Parameter> {
    const entry = this.tensors.get(name);
    assert(entry, `${this.path} has no ${name}`);
    const parameter = await this.#values(entry);
    if (!isInterleaved(this.metadata.get("general.architecture"), name)) return parameter;
    separateHalves(parameter, this.#heads(name));
    return parameter;
  }

  /** The values of `ropeFactors`; empty where the file holds none. */
  async readRopeFactors(): Promise<Float32Array> {
    return this.ropeFactors ? (await this.#values(this.ropeFactors)).data : new Float32Array();
  }

  async close(): Promise<void> {
    await this.#file.close();
  }

  async #values(entry: TensorEntry): Promise<Parameter> {
    if (entry.dtype === "F32") return await this.#file.readFloats(entry);
    return await this.#file.readValues(entry, ggufFormats[entry.dtype] as BlockFormat);
  }

  #heads(name: string): number {
    const architecture = this.metadata.get("general.architecture");
    const count = this.metadata.get(`${architecture}.attention.head_count`);
    const keyValueCount = this.metadata.get(`${architecture}.attention.head_count_kv`) ?? count;
    const heads = name.includes("q_proj") ? count : keyValueCount;
    assert(typeof heads === "number", `${this.path} does not say how many heads it has`);
    return heads;
  }
}

function renamed(path: string, tensors: ReadonlyMap<string, TensorEntry>): Map<string, TensorEntry> {
  const result = new Map<string, TensorEntry>();
  for (const [name, entry] of tensors) {
    if (name === "rope_freqs.weight") continue;
    const known = huggingFaceName(name);
    if (known === undefined)
      throw new CheckpointError(
        `${path} holds ${name}, which no model of a supported family has; a layer would be left out`,
      );
    result.set(known, entry);
  }
  return result;
}
