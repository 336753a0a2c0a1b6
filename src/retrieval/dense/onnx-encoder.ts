/**
 * An encoder from a folder with an ONNX model and a `tokenizer.json`: E5, BGE, GTE, MiniLM and their like. Vectors
 * repeat from run to run: batches have a fixed make-up, and models that let batch mates influence each other
 * (dynamic int8) see one text at a time.
 */
import { join } from "node:path";
import { z } from "zod";
import { ConfigError, RetrieverError } from "../../errors.ts";
import { type EncodeOptions, type Encoder, encoderHash, passageText } from "./encoder.ts";
import type { EncoderRecipe, Pooling } from "./encoder-models.ts";
import { type EncoderOptions, encoderOptionsSchema, findModelFile, recipeOf } from "./encoder-options.ts";
import { OnnxModel } from "./onnx-model.ts";
import { normalizeRows, poolBatch } from "./pooling.ts";
import { TokenIds } from "./token-ids.ts";

export interface OpenEncoderOptions extends EncoderOptions {
  readonly threads: number;
  /** Name by which the model may be known; the folder's path when absent. */
  readonly name?: string;
}

/**
 * Opens the encoder in `folder`. Throws `FileError` when a file is missing or unusable, `ConfigError` for options
 * that cannot be used or a model that must be declared, `RetrieverError` when ONNX Runtime refuses the model.
 */
export async function openEncoder(folder: string, options: OpenEncoderOptions): Promise<Encoder> {
  const { threads, name = folder, ...rest } = options;
  const parsed = encoderOptionsSchema.safeParse(rest);
  if (!parsed.success) throw new ConfigError(`encoder options: ${z.prettifyError(parsed.error)}`);
  const recipe = await recipeOf(folder, name, parsed.data);
  const file = await findModelFile(folder, parsed.data.file);
  const tokens = await TokenIds.open(join(folder, "tokenizer.json"), recipe.maxTokens);
  const model = await OnnxModel.open(file, threads);
  try {
    const { output, dimensions } = chooseOutput(model, recipe.pooling, file);
    const batchSize = parsed.data.batchSize ?? (model.isDynamic ? 1 : 8);
    return new OnnxEncoder({ model, tokens, recipe, output, dimensions, batchSize });
  } catch (error) {
    await model.close();
    throw error;
  }
}

/** The output that holds token vectors, or sentence vectors for pooling `given`. */
function chooseOutput(
  model: OnnxModel,
  pooling: Pooling,
  file: string,
): { readonly output: string; readonly dimensions: number } {
  const rank = pooling === "given" ? 2 : 3;
  const usual = pooling === "given" ? "sentence_embedding" : "last_hidden_state";
  const fitting = model.outputs.filter((output) => output.rank === rank);
  const output = fitting.find(({ name }) => name === usual) ?? fitting[0];
  if (output?.width !== undefined) return { output: output.name, dimensions: output.width };
  const found = model.outputs.map(
    ({ name, rank: r, width }) => `${name} (${r} dimensions, ${width ?? "?"} wide)`,
  );
  throw new RetrieverError(
    `${file}: pooling ${pooling} needs an output of ${rank} dimensions with a fixed width, got ${found.join(", ")}; declare another pooling or export the model again`,
  );
}

interface Parts {
  readonly model: OnnxModel;
  readonly tokens: TokenIds;
  readonly recipe: EncoderRecipe & { readonly name: string };
  readonly output: string;
  readonly dimensions: number;
  readonly batchSize: number;
}

class OnnxEncoder implements Encoder {
  readonly identity: Encoder["identity"];
  readonly #parts: Parts;

  constructor(parts: Parts) {
    const { model, tokens, recipe, output, dimensions, batchSize } = parts;
    this.#parts = parts;
    const more = { output, ...(model.isDynamic && { batchSize }) };
    const hash = encoderHash([model.hash, tokens.hash], recipe, more);
    this.identity = { ...recipe, dimensions, hash };
  }

  encodeQueries(queries: readonly string[], options: EncodeOptions = {}): Promise<Float32Array> {
    const { queryPrefix } = this.#parts.recipe;
    return this.#encode(
      queries.map((query) => queryPrefix + query),
      options,
    );
  }

  encodePassages(
    passages: readonly Parameters<typeof passageText>[0][],
    options: EncodeOptions = {},
  ): Promise<Float32Array> {
    const { passagePrefix } = this.#parts.recipe;
    return this.#encode(
      passages.map((passage) => passagePrefix + passageText(passage)),
      options,
    );
  }

  async #encode(texts: readonly string[], { signal, onProgress }: EncodeOptions): Promise<Float32Array> {
    const { model, tokens, recipe, output, dimensions, batchSize } = this.#parts;
    signal?.throwIfAborted();
    const sequences = await tokens.encodeAll(texts, signal);
    const total = sequences.reduce((sum, { ids }) => sum + ids.length, 0);
    let done = 0;
    const vectors = new Float32Array(texts.length * dimensions);
    await model.run(sequences, {
      batchSize,
      output,
      signal,
      onBatch: (batch) => {
        poolBatch(batch, recipe.pooling, vectors);
        done += batch.lengths.reduce((sum, length) => sum + length, 0);
        onProgress?.(done / total);
      },
    });
    if (recipe.normalize) normalizeRows(vectors, dimensions);
    const wrong = vectors.findIndex((x) => !Number.isFinite(x));
    if (wrong < 0) return vectors;
    throw new RetrieverError(
      `${recipe.name} gave a vector that is not of numbers for ${JSON.stringify(texts[Math.floor(wrong / dimensions)]?.slice(0, 80))}; the model file is damaged or overflows in its type of numbers: use another export`,
    );
  }

  close(): Promise<void> {
    return this.#parts.model.close();
  }
}
