/** The files of encoders and rerankers on a hub, and the folder of a model wherever it is. */
import { resolve } from "node:path";
import { FileError } from "../../errors.ts";
import { exists } from "../../shared/files.ts";
import {
  downloadModel,
  type HubOptions,
  isHubReference,
  parseHubReference,
  type WantedFile,
} from "../../shared/hub.ts";

export interface LocatedModel {
  readonly folder: string;
  /** The name by which the model may be known. */
  readonly name: string;
}

/**
 * The folder of `model`, which is a folder or `hf:owner/name[@revision]`; of the latter the needed files are fetched
 * into the cache. `file` is the .onnx file within the model where it is not the usual one. Throws `FileError` for
 * a folder that is not there, and what `downloadModel` throws.
 */
export async function locateModel(
  model: string,
  file: string | undefined,
  hub: HubOptions,
): Promise<LocatedModel> {
  if (isHubReference(model)) {
    const reference = parseHubReference(model);
    return { folder: await downloadModel(reference, wantedFiles(file), hub), name: reference.repository };
  }
  const folder = resolve(model);
  if (!(await exists(folder)))
    throw new FileError(
      `there is no model folder ${folder}; expected a folder with model.onnx and tokenizer.json, or hf:owner/name for a model of the hub`,
    );
  return { folder, name: folder };
}

function wantedFiles(file: string | undefined): WantedFile[] {
  const model = file === undefined ? ["onnx/model.onnx", "model.onnx"] : [file];
  const data = model.flatMap((path) => [`${path}_data`, `${path}.data`]);
  const settings = [
    "1_Pooling/config.json",
    "modules.json",
    "sentence_bert_config.json",
    "config_sentence_transformers.json",
  ];
  return [
    { anyOf: model },
    { anyOf: data, optional: true },
    { anyOf: ["tokenizer.json"] },
    ...settings.map((path) => ({ anyOf: [path], optional: true })),
  ];
}
