/**
 * The model that adapters belong to. A checkpoint of adapters does not hold its weights; it says where they are, in the two
 * fields of PEFT's `adapter_config.json`, and in a file of our own which they are: shape and hash.
 */
import { createHash } from "node:crypto";
import { join, resolve } from "node:path";
import { z } from "zod";
import { CheckpointError } from "../errors.ts";
import { exists, writeFileAtomic } from "../shared/files.ts";
import { canonicalJson } from "../shared/hash.ts";
import { type HubOptions, isHubReference } from "../shared/hub.ts";
import type { ModelOptions } from "./model-options.ts";
import { locateModel, parseModelSource } from "./model-source.ts";
import type { ParameterSet } from "./parameters.ts";
import { readJson } from "./read-json.ts";

export interface BaseLocation {
  /** A folder or file, or `owner/name` on a hub. */
  readonly base_model_name_or_path: string;
  /** Of a model on a hub: branch, tag or commit; null: `main`. */
  readonly revision: string | null;
}

/** Which model it is, wherever it lies. */
export interface BaseIdentity {
  readonly model: ModelOptions;
  /** Of `hashParameters`. */
  readonly hash: string;
}

const identityFile = "base_model.json";
const identitySchema = z.strictObject({ model: z.looseObject({}), hash: z.string() });

/** Where a source (a path, `hf:…` or a short name) leads, as PEFT says it; paths become absolute. Throws `ConfigError`. */
export async function locationOfBase(source: string): Promise<BaseLocation> {
  const isPath = !isHubReference(source) && (await exists(source));
  const parsed = isPath ? ({ type: "path", path: source } as const) : parseModelSource(source);
  if (parsed.type === "path") return { base_model_name_or_path: resolve(parsed.path), revision: null };
  const { repository, revision } = parsed.reference;
  return { base_model_name_or_path: repository, revision: revision === "main" ? null : revision };
}

/**
 * The folder or file on this machine of the base of the adapters in `folder`; a relative path starts at the current
 * folder, as in PEFT. Throws `CheckpointError` that names it when it is not there, or what a download throws.
 */
export async function locateBase(
  folder: string,
  { base_model_name_or_path: name, revision }: BaseLocation,
  hub: HubOptions | undefined,
): Promise<string> {
  if (await exists(name)) return resolve(name);
  if (!/^[\w.-]+\/[\w.-]+$/.test(name))
    throw new CheckpointError(
      `${folder} holds adapters for the model ${name}, which is not there; put it back, or write its new place into base_model_name_or_path of adapter_config.json`,
    );
  const source = `hf:${name}@${revision ?? "main"}`;
  if (hub === undefined)
    throw new CheckpointError(
      `${folder} holds adapters for the model ${name} of a hub; fetch it (forager models pull ${source}) and write its folder into base_model_name_or_path of adapter_config.json`,
    );
  return await locateModel(source, hub);
}

/** SHA-256 of names, shapes and float32 values. */
export function hashParameters(parameters: ParameterSet): string {
  const hash = createHash("sha256");
  for (const [name, { shape, data }] of parameters) {
    hash.update(`${name} [${shape}]\n`);
    hash.update(new Uint8Array(data.buffer, data.byteOffset, data.byteLength));
  }
  return hash.digest("hex");
}

export async function writeBaseIdentity(folder: string, identity: BaseIdentity): Promise<void> {
  await writeFileAtomic(join(folder, identityFile), `${JSON.stringify(identity, null, 2)}\n`);
}

/** Where the base lies that adapters are held against, and what it is. */
interface FoundBase {
  readonly path: string;
  readonly model: ModelOptions;
}

/**
 * Refuses a base of another shape than the adapters in `folder` were trained on. Adapters of other libraries do not say
 * which it was and pass, here and in `requireSameWeights`. Throws `CheckpointError`.
 */
export async function requireSameShape(folder: string, { path, model }: FoundBase): Promise<void> {
  const saved = await readIdentity(folder);
  if (saved === undefined) return;
  const [expected, actual] = [canonicalJson(saved.model), canonicalJson(model)];
  if (expected !== actual)
    throw new CheckpointError(
      `${folder} holds adapters for a model of another shape (${expected}) than ${path} (${actual}); use the model they were trained on`,
    );
}

/** Refuses a base with other weights than the adapters in `folder` were trained on. Throws `CheckpointError`. */
export async function requireSameWeights(
  folder: string,
  { path, hash }: { readonly path: string; readonly hash: () => string },
): Promise<void> {
  const saved = await readIdentity(folder);
  if (saved === undefined) return;
  const actual = hash();
  if (saved.hash !== actual)
    throw new CheckpointError(
      `${folder} holds adapters for other weights (${saved.hash.slice(0, 12)}) than those of ${path} (${actual.slice(0, 12)}); use the model they were trained on`,
    );
}

async function readIdentity(folder: string): Promise<z.infer<typeof identitySchema> | undefined> {
  const path = join(folder, identityFile);
  if (!(await exists(path))) return undefined;
  const parsed = identitySchema.safeParse(await readJson(path));
  if (parsed.success) return parsed.data;
  throw new CheckpointError(`${path}: ${z.prettifyError(parsed.error)}`);
}
