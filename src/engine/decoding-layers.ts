/**
 * The parts of a decoding graph that hold weights: the table of embeddings, the scales of normalisations and the linear
 * layers, which may have become products in integers (`integer-layers.ts`).
 */
import { declareWeights, outputWeight, parameter } from "./decoder-graph.ts";
import type { Graph, Tensor } from "./graph.ts";
import { hasAttentionBias, type ModelOptions } from "./model-options.ts";
import { linear } from "./operators.ts";

/** The layer that gives logits; the others are named as their weights are, without `.weight`. */
export const outputLayer = "output";

export interface DecodingLayers {
  /** A parameter that is no linear layer's, by its name. */
  parameter(name: string): Tensor;
  /** The outputs (N, out) of linear layers that read the same x (N, width), which was just normalised. */
  read(x: Tensor, layers: readonly string[]): Tensor[];
  /** The same outputs side by side, where one product gives them. */
  together?(x: Tensor, layers: readonly string[]): Tensor;
  /** The output (N, width) of a linear layer that writes into the residual stream. */
  write(x: Tensor, layer: string): Tensor;
}

/** A parameter or layer of a decoder layer by its name below `model.layers.N`. */
export const inLayer = (layer: number, name: string): string => `model.layers.${layer}.${name}`;

/** Whether a linear layer of the model has a bias. */
export function isBiased(model: ModelOptions, layer: string): boolean {
  return hasAttentionBias(model) && /\.[qkv]_proj$/.test(layer);
}

/** The model's parameters as they are, each a weight of the graph. */
export function plainLayers(graph: Graph, model: ModelOptions): DecodingLayers {
  const parameters = declareWeights(graph, model);
  const named = (name: string): Tensor => parameter(parameters, name);
  const layerOf = (x: Tensor, layer: string): Tensor => {
    if (layer === outputLayer) return linear(graph, x, outputWeight(parameters));
    const bias = isBiased(model, layer) ? named(`${layer}.bias`) : undefined;
    return linear(graph, x, named(`${layer}.weight`), bias);
  };
  return {
    parameter: named,
    read: (x, layers) => layers.map((layer) => layerOf(x, layer)),
    write: layerOf,
  };
}
