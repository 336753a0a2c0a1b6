/**
 * The weights of a model folder: `model.safetensors`, or the several files that `model.safetensors.index.json` lists.
 * The index says which file holds which tensor; file and index must agree.
 */
import { basename, join } from "node:path";
import { z } from "zod";
import { assert, CheckpointError } from "../errors.ts";
import { exists } from "../shared/files.ts";
import type { Parameter } from "./parameters.ts";
import { readJson } from "./read-json.ts";
import { SafetensorsFile } from "./safetensors.ts";
import type { TensorEntry, TensorSource } from "./tensor-file.ts";

export const weightsFile = "model.safetensors";
export const indexFile = "model.safetensors.index.json";

const indexSchema = z.object({ weight_map: z.record(z.string(), z.string()) });

/** Opens the weights of a folder; close them after use. Throws `CheckpointError` or `FileError`. */
export async function openWeights(folder: string): Promise<TensorSource> {
  const index = join(folder, indexFile);
  const isSharded = !(await exists(join(folder, weightsFile))) && (await exists(index));
  return isSharded
    ? await ShardedSafetensors.open(index)
    : await SafetensorsFile.open(join(folder, weightsFile));
}

/** Names of the files that an index lists. Throws `CheckpointError` or `FileError`. */
export async function readShardNames(index: string): Promise<readonly string[]> {
  return [...new Set((await readIndex(index)).values())];
}

class ShardedSafetensors implements TensorSource {
  readonly path: string;
  readonly tensors: ReadonlyMap<string, TensorEntry>;
  readonly bytes: number;
  readonly #files: readonly SafetensorsFile[];
  readonly #fileOf: ReadonlyMap<string, SafetensorsFile>;

  private constructor(path: string, files: readonly SafetensorsFile[]) {
    this.path = path;
    this.#files = files;
    this.#fileOf = new Map(files.flatMap((file) => [...file.tensors.keys()].map((name) => [name, file])));
    this.tensors = new Map(files.flatMap((file) => [...file.tensors]));
    this.bytes = files.reduce((sum, file) => sum + file.bytes, 0);
  }

  static async open(index: string): Promise<ShardedSafetensors> {
    const weightMap = await readIndex(index);
    const files: SafetensorsFile[] = [];
    try {
      for (const name of new Set(weightMap.values()))
        files.push(await SafetensorsFile.open(join(index, "..", name)));
      checkIndex(index, weightMap, files);
      return new ShardedSafetensors(index, files);
    } catch (error) {
      for (const file of files) await file.close();
      throw error;
    }
  }

  async read(name: string): Promise<Parameter> {
    const file = this.#fileOf.get(name);
    assert(file, `${this.path} has no ${name}`);
    return await file.read(name);
  }

  async close(): Promise<void> {
    for (const file of this.#files) await file.close();
  }
}

/** File name by tensor. Names are names only: a path would lead out of the folder. */
async function readIndex(index: string): Promise<ReadonlyMap<string, string>> {
  const parsed = indexSchema.safeParse(await readJson(index));
  if (!parsed.success)
    throw new CheckpointError(`${index} is no index of weights: ${z.prettifyError(parsed.error)}`);
  const weightMap = new Map(Object.entries(parsed.data.weight_map));
  if (weightMap.size === 0) throw new CheckpointError(`${index} lists no tensors; use another copy`);
  for (const [tensor, file] of weightMap) {
    if (file !== basename(file) || file.includes("\\") || !file.endsWith(".safetensors"))
      throw new CheckpointError(
        `${index}: ${tensor} lies in ${JSON.stringify(file)}; the name of a .safetensors file was expected`,
      );
  }
  return weightMap;
}

function checkIndex(
  index: string,
  weightMap: ReadonlyMap<string, string>,
  files: readonly SafetensorsFile[],
): void {
  for (const { path, tensors } of files) {
    for (const name of tensors.keys()) {
      const file = weightMap.get(name);
      if (file === basename(path)) continue;
      const claim = file === undefined ? "does not list it" : `says that it lies in ${file}`;
      throw new CheckpointError(`${path} holds ${name}, ${index} ${claim}; use another copy`);
    }
  }
  for (const [name, file] of weightMap) {
    const holder = files.find(({ path }) => basename(path) === file);
    if (!holder?.tensors.has(name))
      throw new CheckpointError(
        `${holder?.path ?? file} has no ${name}, which ${index} lists; use another copy`,
      );
  }
}
