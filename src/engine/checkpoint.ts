/**
 * A model folder: `config.json` and weights as Hugging Face's libraries write and read them, and for training the
 * optimiser's state beside them. What the decoder does not compute is refused. Files are never half written; that a folder appears at once is the caller's care.
 */
import { join } from "node:path";
import { z } from "zod";
import { CheckpointError } from "../errors.ts";
import { allWritten, exists, writeFileAtomic } from "../shared/files.ts";
import type { Tokenizer } from "../tokenizer/tokenizer.ts";
import type { OptimizerState } from "./adam.ts";
import { configOfModel, modelFromConfig } from "./model-config.ts";
import type { ModelOptions } from "./model-options.ts";
import type { Parameter, ParameterSet } from "./parameters.ts";
import { readJson } from "./read-json.ts";
import { readParameters } from "./read-parameters.ts";
import { readSafetensors, type SafetensorsOptions, writeSafetensors } from "./safetensors.ts";
import { openWeights, weightsFile } from "./sharded-safetensors.ts";
import type { FloatType } from "./tensor-encoding.ts";

export const configFile = "config.json";
const momentsFile = "optimizer.safetensors";
const optimizerFile = "optimizer.json";

const optimizerSchema = z.strictObject({ step: z.int().nonnegative() });

/** Names of the types in `config.json`. */
const typeNames: Readonly<Record<FloatType, string>> = { F32: "float32", F16: "float16", BF16: "bfloat16" };

/** Writes configuration and weights into an existing folder; the tokenizer's ids tell other libraries where to stop. */
export async function writeModel(
  folder: string,
  described: { readonly model: ModelOptions; readonly tokenizer: Tokenizer } & SafetensorsOptions,
  parameters: ParameterSet,
): Promise<void> {
  const { model, tokenizer, dtype = "F32", signal } = described;
  const config = {
    ...configOfModel(model),
    bos_token_id: tokenizer.beginOfTextId ?? null,
    eos_token_id: tokenizer.endOfTextId,
    pad_token_id: tokenizer.paddingId,
    torch_dtype: typeNames[dtype],
  };
  await allWritten([
    writeFileAtomic(join(folder, configFile), `${JSON.stringify(config, null, 2)}\n`),
    writeSafetensors(join(folder, weightsFile), parameters, { dtype, ...(signal && { signal }) }),
  ]);
}

/** Reads a model folder. Throws `CheckpointError` when a part is damaged or of another family, `FileError` when one cannot be read. */
export async function readModel(
  folder: string,
): Promise<{ model: ModelOptions; parameters: Map<string, Parameter> }> {
  const model = await readModelConfig(folder);
  const weights = await openWeights(folder);
  try {
    return { model, parameters: await readParameters(model, weights) };
  } finally {
    await weights.close();
  }
}

/** The shape of the model in a folder, from `config.json` alone. Throws as `readModel`. */
export async function readModelConfig(folder: string): Promise<ModelOptions> {
  const path = join(folder, configFile);
  return modelFromConfig(path, await readJson(path));
}

/** Writes the optimiser's state beside a model. */
export async function writeOptimizer(folder: string, state: OptimizerState): Promise<void> {
  const moments = new Map<string, Parameter>();
  for (const [name, moment] of state.firstMoments) moments.set(`first.${name}`, moment);
  for (const [name, moment] of state.secondMoments) moments.set(`second.${name}`, moment);
  await allWritten([
    writeSafetensors(join(folder, momentsFile), moments),
    writeFileAtomic(join(folder, optimizerFile), `${JSON.stringify({ step: state.step })}\n`),
  ]);
}

/** Reads the optimiser's state for the given parameters, or nothing where the folder holds a model alone. */
export async function readOptimizer(
  folder: string,
  parameters: ParameterSet,
): Promise<OptimizerState | undefined> {
  const path = join(folder, optimizerFile);
  if (!(await exists(path))) return undefined;
  const parsed = optimizerSchema.safeParse(await readJson(path));
  if (!parsed.success) throw new CheckpointError(`${path}: ${z.prettifyError(parsed.error)}`);
  const moments = await readSafetensors(join(folder, momentsFile));
  const select = (prefix: string): Map<string, Parameter> =>
    new Map(
      [...parameters].map(([name, { shape }]) => {
        const moment = moments.get(prefix + name);
        if (!moment || moment.shape.join() !== shape.join()) {
          throw new CheckpointError(
            `${join(folder, momentsFile)} has no ${prefix}${name} of shape [${shape}]; use another checkpoint`,
          );
        }
        return [name, moment];
      }),
    );
  return { step: parsed.data.step, firstMoments: select("first."), secondMoments: select("second.") };
}
