/**
 * Where a model comes from: a short name of the table, `hf:owner/name[@revision]`, or a path. `locateModel` makes a local
 * path of it; what is not here yet is downloaded, where a hub was given.
 */
import { join } from "node:path";
import { ConfigError, FileError } from "../errors.ts";
import { exists } from "../shared/files.ts";
import {
  downloadModel,
  type HubOptions,
  type HubReference,
  isHubReference,
  parseHubReference,
  type WantedFile,
} from "../shared/hub.ts";
import { readModelConfig } from "./checkpoint.ts";
import { findKnownModel, knownModels } from "./known-models.ts";
import { indexFile, readShardNames, weightsFile } from "./sharded-safetensors.ts";

export type ModelSource =
  | { readonly type: "path"; readonly path: string }
  | { readonly type: "hub"; readonly reference: HubReference };

/** Reads a source; a path is not looked at. Throws `ConfigError` for a malformed `hf:` reference. */
export function parseModelSource(text: string): ModelSource {
  const known = findKnownModel(text);
  if (known) {
    const { repository, revision } = known;
    return { type: "hub", reference: { repository, revision } };
  }
  if (isHubReference(text)) return { type: "hub", reference: parseHubReference(text) };
  if (text.trim() === "") throw new ConfigError("the model is empty; name a folder, a .gguf file or a model");
  return { type: "path", path: text };
}

/**
 * The folder or file of a model on this machine. A path wins over a short name that is spelt alike. Throws `FileError`
 * for a path that is not there and for a hub's model without `hub`, `CheckpointError` for a hub's model that is not
 * supported, or what the download throws.
 */
export async function locateModel(text: string, hub?: HubOptions): Promise<string> {
  return await locate(text, hub, downloadWeights);
}

/** The folder or file that holds the tokenizer of a model; of a hub's model no weights are fetched. Throws as `locateModel`. */
export async function locateTokenizer(text: string, hub?: HubOptions): Promise<string> {
  return await locate(text, hub, (reference, options) => downloadModel(reference, described, options));
}

async function locate(
  text: string,
  hub: HubOptions | undefined,
  download: (reference: HubReference, hub: HubOptions) => Promise<string>,
): Promise<string> {
  if (!isHubReference(text) && (await exists(text))) return text;
  const source = parseModelSource(text);
  if (source.type === "path") {
    const names = knownModels.map(({ name }) => name).join(", ");
    throw new FileError(
      `there is no model at ${source.path}; give a folder, a .gguf file, hf:owner/name, or one of ${names}`,
    );
  }
  if (hub === undefined)
    throw new FileError(
      `${text} lies on a hub; fetch it first (forager models pull ${text}) and give its folder`,
    );
  return await download(source.reference, hub);
}

/** What a model needs, and what it may have. */
const described: readonly WantedFile[] = [
  { anyOf: ["config.json"] },
  { anyOf: ["tokenizer.json"] },
  { anyOf: ["tokenizer_config.json"], optional: true },
  { anyOf: ["chat_template.jinja"], optional: true },
  { anyOf: ["generation_config.json"], optional: true },
];

/** Downloads a whole model into the hub's cache; returns its folder. One that is not supported is refused before its weights come. */
async function downloadWeights(reference: HubReference, hub: HubOptions): Promise<string> {
  await readModelConfig(await downloadModel(reference, described, hub));
  const folder = await downloadModel(reference, [{ anyOf: [weightsFile, indexFile] }], hub);
  const index = join(folder, indexFile);
  if ((await exists(join(folder, weightsFile))) || !(await exists(index))) return folder;
  const shards = await readShardNames(index);
  return await downloadModel(
    reference,
    shards.map((name) => ({ anyOf: [name] })),
    hub,
  );
}
