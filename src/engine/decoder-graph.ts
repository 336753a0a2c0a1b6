/**
 * The decoder of the Llama family and its relatives as a graph for training: whole sequences, no cache. Padding lies to the
 * right, where causal attention keeps it from every real token, so that no attention mask for it is needed.
 */
import { projectHeads } from "./attention-projection.ts";
import type { Graph, Tensor } from "./graph.ts";
import { headSize, type ModelOptions, parameterShapes } from "./model-options.ts";
import {
  add,
  attention,
  gatedSilu,
  gatherRows,
  linear,
  type RotaryTables,
  reshape,
  rmsNorm,
  rotate,
  transpose,
} from "./operators.ts";

export type Parameters = ReadonlyMap<string, Tensor>;

// Sizes that differ from run to run: sequences B, tokens of a sequence T, their product N, and T times the
// query heads that share a key head.
const B = "B";
const T = "T";
const N = "N";
const GT = "GT";
/** Positions in the rotary tables. */
const P = "P";

/** Declares all parameters of the model as inputs of the graph. */
export function declareParameters(
  graph: Graph,
  model: ModelOptions,
  trainable: boolean,
): Map<string, Tensor> {
  const declare = trainable
    ? (name: string, shape: readonly number[]) => graph.parameter(name, shape)
    : (name: string, shape: readonly number[]) => graph.input(name, shape);
  return new Map([...parameterShapes(model)].map(([name, shape]) => [name, declare(name, shape)]));
}

/** Declares all parameters of the model as weights of the graph, fixed when its session is made. */
export function declareWeights(graph: Graph, model: ModelOptions): Map<string, Tensor> {
  return new Map([...parameterShapes(model)].map(([name, shape]) => [name, graph.weight(name, shape)]));
}

/** The parameter `name`; asserts that the model has it. */
export function parameter(parameters: Parameters, name: string): Tensor {
  const tensor = parameters.get(name);
  if (!tensor) throw new Error(`Assertion failed: the model has no parameter ${name}`);
  return tensor;
}

/** The table of the output layer: `lm_head`, or the embeddings where they are tied. */
export function outputWeight(parameters: Parameters): Tensor {
  return parameters.get("lm_head.weight") ?? parameter(parameters, "model.embed_tokens.weight");
}

/** Adds the network up to its final normalisation; returns the hidden states (N, width). Feeds: `decoderFeeds`. */
export function buildDecoder(graph: Graph, model: ModelOptions, parameters: Parameters): Tensor {
  const half = headSize(model) / 2;
  const tokens = graph.input("tokens", [N], "int64");
  const rotary: RotaryTables = {
    positions: graph.input("positions", [B, T], "int64"),
    cosine: graph.input("cosine", [P, half]),
    sine: graph.input("sine", [P, half]),
    negatedSine: graph.input("negatedSine", [P, half]),
  };
  const mask = graph.input("mask", [GT, T]);
  let hidden = gatherRows(graph, parameter(parameters, "model.embed_tokens.weight"), tokens);
  for (let layer = 0; layer < model.layers; layer++) {
    const inLayer = (name: string): Tensor => parameter(parameters, `model.layers.${layer}.${name}`);
    const weight = (name: string): Tensor => inLayer(`${name}.weight`);
    const attended = rmsNorm(graph, hidden, weight("input_layernorm"), model.rmsEpsilon);
    hidden = add(graph, hidden, selfAttention(graph, attended, { model, rotary, mask, parameter: inLayer }));
    const normalized = rmsNorm(graph, hidden, weight("post_attention_layernorm"), model.rmsEpsilon);
    const gate = linear(graph, normalized, weight("mlp.gate_proj"));
    const up = linear(graph, normalized, weight("mlp.up_proj"));
    hidden = add(graph, hidden, linear(graph, gatedSilu(graph, gate, up), weight("mlp.down_proj")));
  }
  return rmsNorm(graph, hidden, parameter(parameters, "model.norm.weight"), model.rmsEpsilon);
}

interface AttentionSetting {
  readonly model: ModelOptions;
  readonly rotary: RotaryTables;
  readonly mask: Tensor;
  /** A parameter of the layer by its name below `model.layers.N`. */
  readonly parameter: (name: string) => Tensor;
}

/**
 * Grouped-query attention: the query heads that share a key head are stacked along time, so that keys and
 * values are never repeated in memory; the mask is stacked likewise.
 */
function selfAttention(graph: Graph, x: Tensor, setting: AttentionSetting): Tensor {
  const { model, rotary, mask, parameter } = setting;
  const { heads, keyValueHeads } = model;
  const size = headSize(model);
  const groupSize = heads / keyValueHeads;
  const project = (name: "q" | "k" | "v"): Tensor =>
    projectHeads(graph, x, { model, parameter, sizes: [B, T], name });
  const byHead = (projected: Tensor): Tensor =>
    transpose(graph, reshape(graph, projected, [B, T, keyValueHeads, size]), [0, 2, 1, 3]);
  const query = rotate(graph, project("q"), rotary);
  const grouped = reshape(graph, query, [B, T, keyValueHeads, groupSize, size]);
  const output = attention(
    graph,
    {
      query: reshape(graph, transpose(graph, grouped, [0, 2, 3, 1, 4]), [B, keyValueHeads, GT, size]),
      key: byHead(rotate(graph, project("k"), rotary)),
      value: byHead(project("v")),
      mask,
    },
    1 / Math.sqrt(size),
  );
  const stacked = reshape(graph, output, [B, keyValueHeads, groupSize, T, size]);
  const joined = reshape(graph, transpose(graph, stacked, [0, 3, 1, 2, 4]), [N, heads * size]);
  return linear(graph, joined, parameter("self_attn.o_proj.weight"));
}

/** 0 where a token may look, a large negative number where it may not: (groupSize * T, T). */
export function causalMask(time: number, groupSize: number): Float32Array {
  const mask = new Float32Array(groupSize * time * time);
  for (let row = 0; row < groupSize * time; row++) {
    mask.fill(maskedScore, row * time + (row % time) + 1, (row + 1) * time);
  }
  return mask;
}

/** Added to scores that must vanish in a softmax; finite, so that a row without any allowed score is no NaN. */
export const maskedScore = -1e9;
