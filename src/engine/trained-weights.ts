/**
 * What an engine trains: all weights of a model, or adapters beside frozen ones (`lora-weights.ts`). Graphs, optimiser and
 * checkpoints see either through this.
 */

import { CheckpointError } from "../errors.ts";
import { canonicalJson } from "../shared/hash.ts";
import type { Tokenizer } from "../tokenizer/tokenizer.ts";
import { readModel, writeModel } from "./checkpoint.ts";
import type { AdaptedModel } from "./lora.ts";
import { adapterConfigFile, isAdapterFolder } from "./lora-files.ts";
import type { ModelOptions } from "./model-options.ts";
import type { ParameterSet } from "./parameters.ts";

export interface TrainedWeights {
  readonly adapted: AdaptedModel;
  /** What graphs over whole sequences are fed. */
  readonly all: ParameterSet;
  /** The part of it that has gradients and moments and is saved. */
  readonly trained: ParameterSet;
  /** The weights of a plain model that computes what this one does now, to sample from. */
  merged(): Promise<ParameterSet>;
  /** Gives back the arrays that `merged` made; nothing may be reading them. */
  forgetMerged(merged: ParameterSet): void;
  /** Writes what is trained, and of what it is, into an existing folder. */
  save(folder: string, tokenizer: Tokenizer): Promise<void>;
  /** New arrays with the values that `save` wrote. Throws `CheckpointError` where they are of another model. */
  read(folder: string): Promise<ParameterSet>;
}

/** All weights of a model. */
export function wholeWeights(model: ModelOptions, parameters: ParameterSet): TrainedWeights {
  return {
    adapted: { model },
    all: parameters,
    trained: parameters,
    merged: async () => parameters,
    forgetMerged: () => undefined,
    save: (folder, tokenizer) => writeModel(folder, { model, tokenizer }, parameters),
    read: (folder) => readWhole(folder, model),
  };
}

async function readWhole(folder: string, model: ModelOptions): Promise<ParameterSet> {
  if (await isAdapterFolder(folder))
    throw new CheckpointError(
      `${folder} holds adapters (${adapterConfigFile}), all weights of a model were expected; use a checkpoint of this training, or the engine.lora it was made with`,
    );
  const saved = await readModel(folder);
  if (canonicalJson(saved.model) !== canonicalJson(model))
    throw new CheckpointError(
      `${folder} holds a model of another shape (${canonicalJson(saved.model)}) than this one (${canonicalJson(model)}); use a checkpoint of the same model`,
    );
  return saved.parameters;
}
