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
import { type CreateMoments, type Moments, momentKinds } from "./moments.ts";
import type { Parameter, ParameterSet } from "./parameters.ts";
import { readJson } from "./read-json.ts";
import { readParameters } from "./read-parameters.ts";
import {
  SafetensorsFile,
  type SafetensorsOptions,
  type TensorValues,
  writeSafetensors,
} from "./safetensors.ts";
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

/** Writes the optimiser's state beside a model. Throws `FileError`. */
export async function writeOptimizer(folder: string, { step, moments }: OptimizerState): Promise<void> {
  const tensors = new Map<string, TensorValues>();
  for (const kind of momentKinds)
    for (const [name, shape] of moments.shapes)
      tensors.set(`${kind}.${name}`, { shape, data: moments.read(kind, name) });
  await allWritten([
    writeSafetensors(join(folder, momentsFile), tensors),
    writeFileAtomic(join(folder, optimizerFile), `${JSON.stringify({ step })}\n`),
  ]);
}

/**
 * Reads the optimiser's state for the given parameters into new moments, or nothing where the folder holds a model alone.
 * Throws `CheckpointError`, `FileError`.
 */
export async function readOptimizer(
  folder: string,
  parameters: ParameterSet,
  createMoments: CreateMoments,
): Promise<OptimizerState | undefined> {
  const path = join(folder, optimizerFile);
  if (!(await exists(path))) return undefined;
  const parsed = optimizerSchema.safeParse(await readJson(path));
  if (!parsed.success) throw new CheckpointError(`${path}: ${z.prettifyError(parsed.error)}`);
  const file = await SafetensorsFile.open(join(folder, momentsFile));
  try {
    requireMoments(file, parameters);
    return { step: parsed.data.step, moments: await readMoments(file, parameters, createMoments) };
  } finally {
    await file.close();
  }
}

function requireMoments({ path, tensors }: SafetensorsFile, parameters: ParameterSet): void {
  for (const kind of momentKinds)
    for (const [name, { shape }] of parameters) {
      const entry = tensors.get(`${kind}.${name}`);
      if (entry?.dtype !== "F32" || entry.shape.join() !== shape.join())
        throw new CheckpointError(
          `${path} has no ${kind}.${name} of type F32 and shape [${shape}]; use another checkpoint`,
        );
    }
}

async function readMoments(
  file: SafetensorsFile,
  parameters: ParameterSet,
  createMoments: CreateMoments,
): Promise<Moments> {
  const moments = await createMoments(parameters);
  try {
    for (const name of parameters.keys())
      await moments.change(name, async (piece) => {
        for (const kind of momentKinds) await file.readInto(piece[kind], `${kind}.${name}`, piece.start);
      });
    return moments;
  } catch (error) {
    await moments.close();
    throw error;
  }
}
