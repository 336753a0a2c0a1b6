/**
 * One decoder layer of the Llama family and its relatives in a graph for training: whole sequences, no cache. Padding lies to the
 * right, where causal attention keeps it from every real token, so that no attention mask for it is needed.
 */
import { attention } from "./attention.ts";
import { projectHeads } from "./attention-projection.ts";
import type { Blocks, SequenceEnds } from "./attention-values.ts";
import type { Dimension, Graph, Tensor } from "./graph.ts";
import type { Keep } from "./keep.ts";
import type { AdaptedModel } from "./lora.ts";
import { type Adapter, adaptedLinear, findAdapter } from "./lora-graph.ts";
import { headSize, type ModelOptions, parameterShapes } from "./model-options.ts";
import { add, gatedSilu, type RotaryTables, reshape, rmsNorm, rotate } from "./operators.ts";
import { declarePacking, layOut, type PackingTables, takeBack } from "./packing-graph.ts";

export type Parameters = ReadonlyMap<string, Tensor>;

// Sizes that differ from run to run: sequences B, tokens of a sequence T, rows N: their product, or fewer where they are packed.
const B = "B";
const T = "T";
const N = "N";
/** Positions in the rotary tables. */
const P = "P";

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

/** What all layers of a graph share. */
export interface LayerTables {
  readonly rotary: RotaryTables;
  readonly ends: SequenceEnds;
  /** Blocks of attention; absent: one. */
  readonly blocks?: Blocks | undefined;
  /** Where rows are packed: how they lie among the places of attention. */
  readonly packing?: PackingTables;
}

/** Sequences and tokens of a sequence as they are projected and rotated: each row that is packed is one of its own. */
function sizesOf({ packing }: Pick<LayerTables, "packing">): readonly [Dimension, Dimension] {
  return packing ? [N, 1] : [B, T];
}

export interface TableForm {
  /** Whether rows are packed (`packing.ts`); absent: no. */
  readonly isPacked?: boolean;
  /** Blocks of attention, for so many sequences; absent: one block, for any number. */
  readonly blocks?: { readonly count: number; readonly batch: number } | undefined;
}

/** Declares positions, rotary tables, the ends of sequences and, of packed rows, their places as inputs of the graph. */
export function declareTables(
  graph: Graph,
  model: ModelOptions,
  { isPacked = false, blocks }: TableForm = {},
): LayerTables {
  const half = headSize(model) / 2;
  const packing = isPacked ? declarePacking(graph) : undefined;
  const rotary: RotaryTables = {
    positions: graph.input("positions", packing ? [N, 1] : [B, T], "int64"),
    cosine: graph.input("cosine", [P, half]),
    sine: graph.input("sine", [P, half]),
    negatedSine: graph.input("negatedSine", [P, half]),
  };
  const ends: SequenceEnds = {
    lastPositions: graph.input("lastPositions", [B], "int32"),
    tokens: graph.input("tokens", [1], "int32"),
  };
  return {
    rotary,
    ends,
    ...(blocks && {
      blocks: { ends: graph.input("blockEnds", [blocks.count], "int64"), batch: blocks.batch },
    }),
    ...(packing && { packing }),
  };
}

export interface LayerParameters {
  /** A parameter of the layer by its name below `model.layers.N`, such as `mlp.up_proj.weight`. */
  readonly parameter: (name: string) => Tensor;
  /** The adapter of a projection of the layer, such as `mlp.up_proj`, if it has one. */
  readonly adapter: (name: string) => Adapter | undefined;
}

/** The parameters and adapters of layer number `layer` among those of the model. */
export function layerParameters(
  parameters: Parameters,
  layer: number,
  { lora }: Pick<AdaptedModel, "lora">,
): LayerParameters {
  const prefix = `model.layers.${layer}.`;
  return {
    parameter: (name) => parameter(parameters, prefix + name),
    adapter: (name) => findAdapter(parameters, prefix + name, lora),
  };
}

export interface LayerSetting extends LayerTables, LayerParameters {
  readonly model: ModelOptions;
  readonly keep: Keep;
  /** Whether what attention computes is kept too, its weights among it; absent: no. */
  readonly keepsAttention?: boolean;
}

/** Adds one decoder layer: hidden states (N, width) to hidden states (N, width). */
export function buildLayer(graph: Graph, hidden: Tensor, setting: LayerSetting): Tensor {
  const { model, parameter, keep } = setting;
  const weight = (name: string): Tensor => parameter(`${name}.weight`);
  const attended = rmsNorm(graph, hidden, weight("input_layernorm"), model.rmsEpsilon);
  const between = keep(add(graph, hidden, selfAttention(graph, attended, setting)), "between");
  const normalized = rmsNorm(graph, between, weight("post_attention_layernorm"), model.rmsEpsilon);
  const gate = keep(project(graph, normalized, { ...setting, name: "mlp.gate_proj" }), "gate");
  const up = keep(project(graph, normalized, { ...setting, name: "mlp.up_proj" }), "up");
  const activated = gatedSilu(graph, gate, up);
  return add(graph, between, project(graph, activated, { ...setting, name: "mlp.down_proj" }));
}

/** A projection of a layer that has no bias, with its adapter. */
function project(graph: Graph, x: Tensor, setting: LayerParameters & { readonly name: string }): Tensor {
  const { parameter, adapter, name } = setting;
  return adaptedLinear(graph, x, { weight: parameter(`${name}.weight`), adapter: adapter(name) });
}

function selfAttention(graph: Graph, x: Tensor, setting: LayerSetting): Tensor {
  const { model, rotary, ends, blocks, packing, parameter, adapter, keep } = setting;
  const { heads, keyValueHeads } = model;
  const headsOf = (name: "q" | "k" | "v"): Tensor =>
    projectHeads(graph, x, { model, parameter, adapter, sizes: sizesOf(setting), name });
  const atPlaces = (rows: Tensor, readAt: "first" | "all"): Tensor =>
    packing ? layOut(graph, rows, { tables: packing, readAt }) : rows;
  const size = headSize(model);
  const attended = attention(
    graph,
    {
      query: atPlaces(keep(rotate(graph, headsOf("q"), rotary), "query"), "first"),
      key: atPlaces(keep(rotate(graph, headsOf("k"), rotary), "key"), "all"),
      value: atPlaces(keep(headsOf("v"), "value"), "all"),
      ends,
      blocks,
    },
    {
      heads,
      keyValueHeads,
      headSize: size,
      sizes: [B, T],
      keep: setting.keepsAttention ? keep : undefined,
    },
  );
  const joined = packing ? takeBack(graph, attended, packing) : reshape(graph, attended, [N, heads * size]);
  return project(graph, joined, { ...setting, name: "self_attn.o_proj" });
}
