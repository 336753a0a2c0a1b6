/**
 * Adapters that are trained beside the frozen weights of a model. A checkpoint holds the adapters alone, and says which
 * model they belong to; of another model they are refused.
 */
import { CheckpointError } from "../errors.ts";
import { canonicalJson } from "../shared/hash.ts";
import { releaseArrays } from "../shared/release-arrays.ts";
import { initializeAdapters } from "./lora.ts";
import {
  hashParameters,
  locationOfBase,
  requireSameShape,
  requireSameWeights,
  writeBaseIdentity,
} from "./lora-base.ts";
import {
  type AdapterConfig,
  adapterConfigFile,
  isAdapterFolder,
  readAdapterConfig,
  readAdapters,
  writeAdapters,
} from "./lora-files.ts";
import { mergeAdapters } from "./lora-merge.ts";
import type { LoraOptions } from "./lora-options.ts";
import type { ModelFiles } from "./model-files.ts";
import type { ModelOptions } from "./model-options.ts";
import type { ParameterSet } from "./parameters.ts";
import type { TrainedWeights } from "./trained-weights.ts";

/** The adapters a training starts with. */
export interface AdapterSetting {
  readonly lora: LoraOptions;
  /** Of fresh adapters. */
  readonly seed: number;
}

/**
 * The weights of a model with fresh adapters, or with those of the files where they hold adapters already, which are then
 * trained further. Throws `CheckpointError` where those have other options than `lora`, `EngineError` for a rank
 * that is too large.
 */
export async function openAdapted(
  files: ModelFiles,
  setting: AdapterSetting & { readonly source: string; readonly threads: number },
): Promise<TrainedWeights> {
  const { lora, seed, source, threads } = setting;
  const { model, adapters: stored, path } = files;
  if (stored) {
    requireSameOptions(path, stored.config.lora, lora);
    const base = await stored.readBase();
    const adapters = await stored.readAdapters();
    return adaptedWeights({ model, base, adapters, config: stored.config, threads });
  }
  const adapters = initializeAdapters(model, lora, seed);
  const base = await files.readParameters();
  const config = { lora, location: await locationOfBase(source) };
  return adaptedWeights({ model, base, adapters, config, threads });
}

export interface AdaptedParts {
  readonly model: ModelOptions;
  readonly base: ParameterSet;
  readonly adapters: ParameterSet;
  readonly config: AdapterConfig;
  readonly threads: number;
  /** Of the base, where several adapters share one; absent: computed when it is first needed. */
  readonly hash?: () => string;
}

/** Adapters beside a base, whose arrays are only read and may belong to many. */
export function adaptedWeights({
  model,
  base,
  adapters,
  config,
  threads,
  hash = hashOnce(base),
}: AdaptedParts): TrainedWeights {
  const { lora } = config;
  return {
    adapted: { model, lora },
    all: new Map([...base, ...adapters]),
    trained: adapters,
    merged: () => mergeAdapters(base, adapters, { model, lora, threads }),
    forgetMerged: (merged) => {
      const made = [...merged].filter(([name, { data }]) => data !== base.get(name)?.data);
      releaseArrays(made.map(([, { data }]) => data));
    },
    save: async (folder) => {
      await writeAdapters(folder, config, adapters);
      await writeBaseIdentity(folder, { model, hash: hash() });
    },
    read: async (folder) => {
      await requireAdapters(folder);
      const path = config.location.base_model_name_or_path;
      await requireSameShape(folder, { path, model });
      await requireSameWeights(folder, { path, hash });
      requireSameOptions(folder, (await readAdapterConfig(folder)).lora, lora);
      return await readAdapters(folder, model, lora);
    },
  };
}

/** The hash of parameters that do not change, computed when it is first asked for. */
export function hashOnce(parameters: ParameterSet): () => string {
  let known: string | undefined;
  return () => {
    known ??= hashParameters(parameters);
    return known;
  };
}

async function requireAdapters(folder: string): Promise<void> {
  if (await isAdapterFolder(folder)) return;
  throw new CheckpointError(
    `${folder} has no ${adapterConfigFile}, adapters were expected; use a checkpoint of this training, or leave engine.lora out`,
  );
}

function requireSameOptions(folder: string, saved: LoraOptions, lora: LoraOptions): void {
  const [theirs, ours] = [saved, lora].map(({ rank, alpha, targets }) =>
    canonicalJson({ rank, alpha, targets: [...targets].sort() }),
  );
  if (theirs === ours) return;
  throw new CheckpointError(
    `${folder} holds adapters of other options (${theirs}) than engine.lora (${ours}); use the same options, or start from a model with its adapters merged (forager export --to merged)`,
  );
}
