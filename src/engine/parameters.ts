/** The weights of a model as arrays that JavaScript owns, by Hugging Face's names; every graph reads these very arrays. */
import { type Random, random } from "../shared/random.ts";
import { type ModelOptions, parameterShapes } from "./model-options.ts";

export interface Parameter {
  readonly shape: readonly number[];
  readonly data: Float32Array;
}

export type ParameterSet = ReadonlyMap<string, Parameter>;

/**
 * Fresh weights: normal with deviation 1/sqrt(fan-in); the two layers that write into the residual stream
 * smaller by sqrt(2 layers), as in GPT-2; scales are 1, biases 0. Embeddings have deviation 1 where they are a table of
 * their own: a token that fills the residual stream is copied by attention much sooner (docs/LOG.md). Tied to
 * the output layer they have its 1/sqrt(width), or the first logits would be far apart.
 */
export function initializeParameters(model: ModelOptions, seed: number): Map<string, Parameter> {
  return new Map(
    [...parameterShapes(model)].map(([name, shape]) => {
      const data = new Float32Array(shape.reduce((a, b) => a * b, 1));
      if (shape.length === 1) data.fill(name.endsWith(".bias") ? 0 : 1);
      else fillNormal(data, deviation(name, shape, model), random(seed, "parameter", name));
      return [name, { shape, data }];
    }),
  );
}

/** How many numbers they hold. */
export function countParameters(parameters: ParameterSet): number {
  let count = 0;
  for (const { data } of parameters.values()) count += data.length;
  return count;
}

export function zerosLike(parameters: ParameterSet): Map<string, Parameter> {
  return new Map(
    [...parameters].map(([name, { shape, data }]) => [name, { shape, data: new Float32Array(data.length) }]),
  );
}

export function copyParameters(parameters: ParameterSet): Map<string, Parameter> {
  return new Map([...parameters].map(([name, { shape, data }]) => [name, { shape, data: data.slice() }]));
}

function deviation(name: string, shape: readonly number[], { layers, tieEmbeddings }: ModelOptions): number {
  const fanIn = 1 / Math.sqrt(shape[1] as number);
  if (name.includes("embed_tokens")) return tieEmbeddings ? fanIn : 1;
  return name.includes("o_proj") || name.includes("down_proj") ? fanIn / Math.sqrt(2 * layers) : fanIn;
}

function fillNormal(data: Float32Array, scale: number, chance: Random): void {
  for (let i = 0; i < data.length; i++) data[i] = chance.normal() * scale;
}
