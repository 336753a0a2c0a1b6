/**
 * A folder of adapters as the library PEFT writes and reads it: `adapter_config.json` and `adapter_model.safetensors`.
 * What would change the mathematics (other kinds of adapters, biases, ranks by layer) is refused by name.
 */
import { stat } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { CheckpointError } from "../errors.ts";
import { allWritten, exists, fileError, writeFileAtomic } from "../shared/files.ts";
import { adapterShapes } from "./lora.ts";
import type { BaseLocation } from "./lora-base.ts";
import { type LoraOptions, loraTargets } from "./lora-options.ts";
import type { ModelOptions } from "./model-options.ts";
import type { Parameter, ParameterSet } from "./parameters.ts";
import { readJson } from "./read-json.ts";
import { requireFinite } from "./read-parameters.ts";
import { SafetensorsFile, writeSafetensors } from "./safetensors.ts";

export const adapterConfigFile = "adapter_config.json";
export const adapterWeightsFile = "adapter_model.safetensors";

/** PEFT's names are those of the module tree with its own two levels around. */
const prefix = "base_model.model.";

/** Fields that change nothing of what trained adapters compute. */
const harmless: ReadonlySet<string> = new Set([
  "auto_mapping",
  "inference_mode",
  "lora_dropout",
  "megatron_core",
  "peft_version",
  "qalora_group_size",
]);

/**
 * PEFT names a projection by the end of its path, and with `all-linear` by the whole path, layer after layer. That every layer
 * has its adapters is seen in the file of the weights.
 */
const target = z
  .string()
  .transform((path) => path.split(".").at(-1))
  .pipe(z.enum(loraTargets, `only adapters of ${loraTargets.join(", ")} are supported`));
const configSchema = z.looseObject({
  peft_type: z.literal("LORA", "only adapters of the type LORA are supported"),
  task_type: z.literal("CAUSAL_LM").nullish(),
  base_model_name_or_path: z.string().min(1),
  revision: z.string().nullish(),
  r: z.int().min(1),
  lora_alpha: z.number().positive(),
  target_modules: z.array(target).min(1),
  bias: z.literal("none", "adapters with biases are not supported").default("none"),
  init_lora_weights: z
    .union(
      [z.boolean(), z.enum(["gaussian", "orthogonal"])],
      "ways of starting that change the base are not supported",
    )
    .default(true),
});

/** What `adapter_config.json` says. */
export interface AdapterConfig {
  readonly lora: LoraOptions;
  readonly location: BaseLocation;
}

/** Whether a folder holds adapters. */
export async function isAdapterFolder(folder: string): Promise<boolean> {
  return await exists(join(folder, adapterConfigFile));
}

/** Reads `adapter_config.json`. Throws `CheckpointError` that names file and field, or `FileError`. */
export async function readAdapterConfig(folder: string): Promise<AdapterConfig> {
  const path = join(folder, adapterConfigFile);
  const parsed = configSchema.safeParse(await readJson(path));
  if (!parsed.success)
    throw new CheckpointError(
      `${path} describes no adapters that can be loaded:\n${z.prettifyError(parsed.error)}`,
    );
  const config = parsed.data;
  for (const [field, value] of Object.entries(config)) {
    if (field in configSchema.shape || harmless.has(field) || isEmpty(value)) continue;
    throw new CheckpointError(
      `${path}: ${field} ${JSON.stringify(value)} is not supported; use adapters without it`,
    );
  }
  const targets = loraTargets.filter((name) => config.target_modules.includes(name));
  const { base_model_name_or_path, revision = null } = config;
  return {
    lora: { rank: config.r, alpha: config.lora_alpha, targets },
    location: { base_model_name_or_path, revision },
  };
}

function isEmpty(value: unknown): boolean {
  if (value === null || value === false || value === "") return true;
  return typeof value === "object" && Object.keys(value as object).length === 0;
}

/** Writes configuration and adapters into an existing folder. */
export async function writeAdapters(
  folder: string,
  { lora, location }: AdapterConfig,
  adapters: ParameterSet,
): Promise<void> {
  const config = {
    peft_type: "LORA",
    task_type: "CAUSAL_LM",
    ...location,
    r: lora.rank,
    lora_alpha: lora.alpha,
    target_modules: lora.targets,
    lora_dropout: 0,
    bias: "none",
    fan_in_fan_out: false,
    init_lora_weights: true,
    inference_mode: true,
    modules_to_save: null,
    use_dora: false,
    use_rslora: false,
  };
  const named = new Map([...adapters].map(([name, adapter]) => [prefix + name, adapter]));
  await allWritten([
    writeFileAtomic(join(folder, adapterConfigFile), `${JSON.stringify(config, null, 2)}\n`),
    writeSafetensors(join(folder, adapterWeightsFile), named),
  ]);
}

/** Size of the file that holds the adapters. Throws `FileError`. */
export async function adapterBytes(folder: string): Promise<number> {
  const path = join(folder, adapterWeightsFile);
  try {
    return (await stat(path)).size;
  } catch (cause) {
    throw fileError(`cannot read ${path}`, cause);
  }
}

/**
 * Reads the adapters as float32, in the order of the network: exactly those that model and options have. Throws
 * `CheckpointError` that names file and tensor, or `FileError`.
 */
export async function readAdapters(
  folder: string,
  model: ModelOptions,
  lora: LoraOptions,
): Promise<Map<string, Parameter>> {
  const file = await SafetensorsFile.open(join(folder, adapterWeightsFile));
  try {
    const shapes = adapterShapes(model, lora);
    const adapters = new Map<string, Parameter>();
    for (const [name, shape] of shapes) {
      const entry = file.tensors.get(prefix + name);
      if (entry?.shape.join() !== shape.join())
        throw new CheckpointError(
          `${file.path}: ${prefix + name} of shape [${shape}] was expected, ${entry ? `it has shape [${entry.shape}]` : "it is missing"}; the adapters belong to another model or configuration`,
        );
      const adapter = await file.read(prefix + name);
      requireFinite(file.path, prefix + name, adapter);
      adapters.set(name, adapter);
    }
    for (const name of file.tensors.keys())
      if (!name.startsWith(prefix) || !shapes.has(name.slice(prefix.length)))
        throw new CheckpointError(
          `${file.path} holds ${name}, which adapters of this model and configuration do not have; they would be left out`,
        );
    return adapters;
  } finally {
    await file.close();
  }
}
