/**
 * The parameters of a model out of a file's tensors: all that the network has, each of its shape, and nothing else.
 * Two kinds of tensors more are no sign of another model: an output layer equal to embeddings it is tied to, and
 * the rotary frequencies that old versions of transformers stored.
 */
import { CheckpointError } from "../errors.ts";
import { type ModelOptions, parameterShapes } from "./model-options.ts";
import type { Parameter } from "./parameters.ts";
import type { TensorSource } from "./tensor-file.ts";

const outputName = "lm_head.weight";
const embeddingName = "model.embed_tokens.weight";

/** Checks that a file holds exactly the model's tensors; reads headers only. Throws `CheckpointError` that names file and tensor. */
export function checkTensors(model: ModelOptions, source: TensorSource): void {
  const shapes = parameterShapes(model);
  for (const [name, shape] of shapes) {
    const entry = source.tensors.get(name);
    if (!entry)
      throw new CheckpointError(
        `${source.path} has no ${name}; it belongs to another model than its configuration says`,
      );
    if (entry.shape.join() !== shape.join())
      throw new CheckpointError(
        `${source.path}: ${name} has shape [${entry.shape}], [${shape}] was expected from the configuration`,
      );
  }
  for (const name of source.tensors.keys()) {
    if (shapes.has(name) || name.endsWith(".rotary_emb.inv_freq")) continue;
    if (name === outputName && model.tieEmbeddings) continue;
    throw new CheckpointError(
      `${source.path} holds ${name}, which a model of its configuration does not have; a layer would be left out`,
    );
  }
}

/** Reads all parameters as float32, in the order of the network. Throws `CheckpointError` or `FileError`. */
export async function readParameters(
  model: ModelOptions,
  source: TensorSource,
): Promise<Map<string, Parameter>> {
  checkTensors(model, source);
  const parameters = new Map<string, Parameter>();
  for (const name of parameterShapes(model).keys()) {
    const parameter = await source.read(name);
    requireFinite(source.path, name, parameter);
    parameters.set(name, parameter);
  }
  if (model.tieEmbeddings && source.tensors.has(outputName)) {
    const { data } = await source.read(outputName);
    const embeddings = (parameters.get(embeddingName) as Parameter).data;
    if (data.length !== embeddings.length || data.some((value, i) => value !== embeddings[i]))
      throw new CheckpointError(
        `${source.path}: ${outputName} differs from ${embeddingName}, but tie_word_embeddings says they are one; set it to false`,
      );
  }
  return parameters;
}

/** Refuses values that are no numbers, which no model has that is whole. Throws `CheckpointError` that names file and tensor. */
export function requireFinite(path: string, name: string, { data }: Parameter): void {
  if (Number.isFinite(sumOf(data))) return;
  const place = data.findIndex((value) => !Number.isFinite(value));
  throw new CheckpointError(
    `${path}: ${name} holds ${data[place]} at ${place}: the file is damaged, or its training diverged; use another copy or checkpoint`,
  );
}

/** Finite where all values are: float32 values never add up beyond the range of a double. */
function sumOf(values: Float32Array): number {
  let sum = 0;
  for (let i = 0; i < values.length; i++) sum += values[i] as number;
  return sum;
}
