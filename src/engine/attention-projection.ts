/**
 * Queries, keys and values of one layer, in the one form that all graphs share: a linear layer, with a bias in
 * Qwen2; in Qwen3 each head's queries and keys are then normalised by themselves.
 */
import type { Dimension, Graph, Tensor } from "./graph.ts";
import { type Adapter, adaptedLinear } from "./lora-graph.ts";
import { hasAttentionBias, hasQueryKeyNorm, headSize, type ModelOptions } from "./model-options.ts";
import { reshape, rmsNorm } from "./operators.ts";

export interface ProjectionSetting {
  readonly model: ModelOptions;
  /** A parameter of the layer by its name below `model.layers.N`, such as `self_attn.q_proj.weight`. */
  readonly parameter: (name: string) => Tensor;
  /** The adapter of a projection of the layer, such as `self_attn.q_proj`; absent: none has one. */
  readonly adapter?: (name: string) => Adapter | undefined;
  /** Sequences and tokens of a sequence, whose product is the rows of x. */
  readonly sizes: readonly [Dimension, Dimension];
}

/** x (N, width) to (B, T, heads * headDim), not yet rotated. */
export function projectHeads(
  graph: Graph,
  x: Tensor,
  setting: ProjectionSetting & { readonly name: "q" | "k" | "v" },
): Tensor {
  const { model, parameter, name } = setting;
  const projection = `self_attn.${name}_proj`;
  const projected = adaptedLinear(graph, x, {
    weight: parameter(`${projection}.weight`),
    bias: hasAttentionBias(model) ? parameter(`${projection}.bias`) : undefined,
    adapter: setting.adapter?.(projection),
  });
  return normalizeHeads(graph, projected, setting);
}

/** What a projection gives, (N, heads * headDim), as (B, T, heads * headDim), normalised where the model does so. */
export function normalizeHeads(
  graph: Graph,
  projected: Tensor,
  setting: Omit<ProjectionSetting, "adapter"> & { readonly name: "q" | "k" | "v" },
): Tensor {
  const { model, parameter, sizes, name } = setting;
  const size = headSize(model);
  const heads = name === "q" ? model.heads : model.keyValueHeads;
  const joined = [...sizes, heads * size];
  if (name === "v" || !hasQueryKeyNorm(model)) return reshape(graph, projected, joined);
  const split = reshape(graph, projected, [...sizes, heads, size]);
  const scale = parameter(`self_attn.${name}_norm.weight`);
  return reshape(graph, rmsNorm(graph, split, scale, model.rmsEpsilon), joined);
}
