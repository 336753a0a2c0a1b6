/** Which model a training starts from, so that it is known again wherever it lies: its source, revision and hash. */
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { readdir, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { trainableModel } from "../config/model-source-options.ts";
import type { Recipe } from "../config/recipe.ts";
import { fileError } from "../shared/files.ts";
import { downloadedCommit } from "../shared/hub.ts";
import { hubSettings, type Watcher } from "./hub-settings.ts";

export type BaseModel =
  | { readonly type: "fresh" }
  | {
      readonly type: "pretrained";
      /** As the recipe names it. */
      readonly source: string;
      /** `owner/name@revision` and the commit behind it, for a model of a hub. */
      readonly hub?: string;
      readonly commit?: string;
      /** SHA-256 over the names and bytes of its configuration, tokenizer, chat template and weights. */
      readonly hash: string;
    };

/** Describes the model of a recipe; one that is not on this machine is fetched. Throws `FileError`, `HubError`. */
export async function describeBaseModel(named: Recipe["model"], watcher?: Watcher): Promise<BaseModel> {
  const model = trainableModel(named);
  if (model.type === "fresh") return { type: "fresh" };
  const { locateModel, parseModelSource } = await import("../engine/model-source.ts");
  const { source } = model;
  const path = await locateModel(source, hubSettings(process.env, watcher));
  const parsed = path === source ? undefined : parseModelSource(source);
  const commit = parsed?.type === "hub" ? await downloadedCommit(path) : undefined;
  return {
    type: "pretrained",
    source,
    ...(parsed?.type === "hub" && { hub: `${parsed.reference.repository}@${parsed.reference.revision}` }),
    ...(commit !== undefined && { commit }),
    hash: await hashOfModel(path),
  };
}

/** What makes a model: an optimiser's state, a data card or a download's record beside it does not. */
const modelFile =
  /^(config|adapter_config|base_model|tokenizer|tokenizer_config)\.json$|^chat_template\.jinja$|^(?!optimizer\.).*\.(safetensors|gguf)$/;

/** SHA-256 over the files of a model at a folder or file. Throws `FileError`. */
export async function hashOfModel(path: string): Promise<string> {
  const hash = createHash("sha256");
  try {
    const isFolder = (await stat(path)).isDirectory();
    const names = isFolder ? (await readdir(path)).filter((name) => modelFile.test(name)) : [basename(path)];
    for (const name of names.sort()) {
      hash.update(`${name}\n`);
      for await (const piece of createReadStream(join(isFolder ? path : dirname(path), name)))
        hash.update(piece as Buffer);
    }
  } catch (cause) {
    throw fileError(`cannot read the model ${path}`, cause);
  }
  return hash.digest("hex");
}
