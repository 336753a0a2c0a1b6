/** Hands on the adapters of a checkpoint that was trained on a server elsewhere: PEFT's files, without the base, which is not here. */
import { copyFile, readdir } from "node:fs/promises";
import { join } from "node:path";
import { adapterConfigFile, adapterWeightsFile, readAdapterConfig } from "../engine/lora-files.ts";
import { readRemoteCheckpoint } from "../engine/tinker/remote-checkpoint.ts";
import { CheckpointError } from "../errors.ts";
import { exists, writeFileAtomic } from "../shared/files.ts";

/** Fills `folder`. Throws `CheckpointError` where the adapters stayed on the server. */
export async function exportRemoteAdapters(checkpoint: string, folder: string): Promise<void> {
  const remote = await readRemoteCheckpoint(checkpoint);
  if (!(await exists(join(checkpoint, adapterWeightsFile))))
    throw new CheckpointError(
      remote.rank === 0
        ? `${checkpoint} is of a model whose weights were all trained; they lie at ${remote.path} of ${remote.url}`
        : `${checkpoint} holds no adapters, they lie at ${remote.path} of ${remote.url}; train with engine.downloadAdapters, where the server hands them out`,
    );
  const { lora, location } = await readAdapterConfig(checkpoint);
  const wanted = (name: string): boolean =>
    name === adapterWeightsFile ||
    name === adapterConfigFile ||
    /^(tokenizer|generation)\w*\.json$/.test(name);
  for (const name of (await readdir(checkpoint)).filter(wanted))
    await copyFile(join(checkpoint, name), join(folder, name));
  const card = [
    "---",
    "library_name: peft",
    `base_model: ${location.base_model_name_or_path}`,
    "---",
    "",
    `Adapters of rank ${lora.rank} (alpha ${lora.alpha}) for ${location.base_model_name_or_path}, on ${lora.targets.join(", ")}.`,
    `They were trained by Forager on ${remote.profile} and exported from \`${remote.path}\`.`,
    ...(remote.profile === "skyrl-jax"
      ? [
          "",
          "SkyRL trained one A for q, k and v, and one for gate and up; each has a copy here. To train on, use SkyRL.",
        ]
      : []),
    "",
    "```python",
    "from peft import AutoPeftModelForCausalLM",
    'model = AutoPeftModelForCausalLM.from_pretrained(".")',
    "```",
    "",
  ];
  await writeFileAtomic(join(folder, "README.md"), card.join("\n"));
}
