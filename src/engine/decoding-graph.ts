/**
 * The decoder as a graph that extends sequences with a cache: S new tokens for each of B sequences attend to T
 * cached ones and to each other. S = 1 is decoding, S > 1 the prefill of a prompt or observation in chunks; all
 * three sizes are free, so that one session serves every call.
 *
 * The cache is time-major, (T, B * keyValueHeads, headDim): its first T rows are a contiguous view that is read
 * without a copy (`transBatchB`), and the buffer behind it can be larger.
 */
import { normalizeHeads } from "./attention-projection.ts";
import { type DecodingLayers, outputLayer, plainLayers } from "./decoding-layers.ts";
import { type Attribute, type Dimension, Graph, type Tensor } from "./graph.ts";
import { IntegerLayers } from "./integer-layers.ts";
import { largestCode } from "./integer-products.ts";
import { headSize, type ModelOptions } from "./model-options.ts";
import { gatedSilu, gatherRows, reshape, rmsNorm, transpose } from "./operators.ts";
import { quantizeProducts } from "./quantized-products.ts";
import { Session, type SessionOptions, type Weight } from "./session.ts";
import type { WeightBits } from "./weight-quantization.ts";

const microsoft = "com.microsoft";
const B = "B";
const S = "S";
const T = "T";
const BK = "BK";
const GS = "GS";
const N = "N";
/** Positions in the rotary tables. */
const P = "P";

export interface DecodingOptions extends SessionOptions {
  /** Bits of the weights of linear layers; absent: they stay fp32. */
  readonly bits?: WeightBits | undefined;
}

export interface DecodingGraph {
  readonly session: Session;
  /** Natural log-probabilities of the next token (B, V). */
  readonly logprobs: string;
  /** By layer: keys and values of the new tokens (B, S, keyValueHeads * headDim). */
  readonly keys: readonly string[];
  readonly values: readonly string[];
}

/**
 * Builds the graph around the weights as they are now; `decoding-model.ts` makes its feeds. The session keeps a
 * packed copy of its own, with which products of few rows are about 1.5 times as fast (docs/LOG.md).
 */
export async function createDecodingGraph(
  model: ModelOptions,
  options: DecodingOptions & { readonly weights: ReadonlyMap<string, Weight> },
): Promise<DecodingGraph> {
  const graph = new Graph();
  const { threads, bits, weights } = options;
  const integer =
    bits === 8 ? new IntegerLayers(graph, model, { weights, highest: await largestCode() }) : undefined;
  const { logprobs, keys, values } = buildNetwork(graph, model, integer ?? plainLayers(graph, model));
  const used = integer?.values ?? (bits === 4 ? await quantizeProducts(graph, weights) : weights);
  const session = await Session.create(graph, [logprobs, ...keys, ...values], { threads, weights: used });
  const names = (tensors: readonly Tensor[]): string[] => tensors.map((tensor) => tensor.name);
  return { session, logprobs: logprobs.name, keys: names(keys), values: names(values) };
}

interface Network {
  readonly logprobs: Tensor;
  readonly keys: readonly Tensor[];
  readonly values: readonly Tensor[];
}

function buildNetwork(graph: Graph, model: ModelOptions, layers: DecodingLayers): Network {
  const inputs = declareInputs(graph, model);
  const keys: Tensor[] = [];
  const values: Tensor[] = [];
  const flatTokens = graph.node("Reshape", [inputs.tokens, graph.integers([-1])], [N], { type: "int64" });
  const table = layers.parameter("model.embed_tokens.weight");
  let hidden = gatherRows(graph, table, flatTokens);
  let change: Tensor | undefined;
  for (let layer = 0; layer < model.layers; layer++) {
    const context: LayerContext = { graph, model, inputs, layers, layer };
    const before = addAndNormalize(context, hidden, { change, norm: inLayer(layer, "input_layernorm") });
    const attended = attend(context, before.normalized);
    keys.push(attended.key);
    values.push(attended.value);
    const between = addAndNormalize(context, before.sum, {
      change: attended.output,
      norm: inLayer(layer, "post_attention_layernorm"),
    });
    change = feedForward(context, between.normalized);
    hidden = between.sum;
  }
  const last = gatherRows(graph, hidden, inputs.last);
  const lastChange = change && gatherRows(graph, change, inputs.last);
  const end = addAndNormalize({ graph, model, layers }, last, { change: lastChange, norm: "model.norm" });
  const [logits] = layers.read(end.normalized, [outputLayer]) as [Tensor];
  const logprobs = graph.node("LogSoftmax", [logits], logits.shape, { attributes: { axis: -1 } });
  return { logprobs, keys, values };
}

const inLayer = (layer: number, name: string): string => `model.layers.${layer}.${name}`;

/** The residual stream after a change, and normalised. */
function addAndNormalize(
  { graph, model, layers }: Pick<LayerContext, "graph" | "model" | "layers">,
  hidden: Tensor,
  { change, norm }: { readonly change: Tensor | undefined; readonly norm: string },
): { readonly sum: Tensor; readonly normalized: Tensor } {
  const scale = layers.parameter(`${norm}.weight`);
  if (!change) return { sum: hidden, normalized: rmsNorm(graph, hidden, scale, model.rmsEpsilon) };
  const [normalized, sum] = graph.nodesWithOutputs(
    "SkipSimplifiedLayerNormalization",
    [hidden, change, scale],
    [hidden.shape, undefined, undefined, hidden.shape],
    { domain: microsoft, attributes: { epsilon: { float: model.rmsEpsilon } } },
  ) as [Tensor, Tensor];
  return { sum, normalized };
}

interface Inputs {
  /** New tokens (B * S) and their positions (B, S). */
  readonly tokens: Tensor;
  readonly positions: Tensor;
  readonly cosine: Tensor;
  readonly sine: Tensor;
  /** 0 or a large negative number: which cached rows a sequence may see (B * keyValueHeads, 1, T). */
  readonly cacheMask: Tensor;
  /** Causal mask among the new tokens, stacked for grouped heads (groupSize * S, S). */
  readonly chunkMask: Tensor;
  /** Row (of B * S) of the last new token of each sequence (B). */
  readonly last: Tensor;
}

function declareInputs(graph: Graph, model: ModelOptions): Inputs {
  const half = headSize(model) / 2;
  return {
    tokens: graph.input("tokens", [N], "int64"),
    positions: graph.input("positions", [B, S], "int64"),
    cosine: graph.input("cosine", [P, half]),
    sine: graph.input("sine", [P, half]),
    cacheMask: graph.input("cacheMask", [BK, 1, T]),
    chunkMask: graph.input("chunkMask", [GS, S]),
    last: graph.input("last", [B], "int64"),
  };
}

interface LayerContext {
  readonly graph: Graph;
  readonly model: ModelOptions;
  readonly inputs: Inputs;
  readonly layers: DecodingLayers;
  readonly layer: number;
}

/** Attention over cache and new tokens; returns the new keys (rotated) and values beside the output. */
function attend(context: LayerContext, x: Tensor): { output: Tensor; key: Tensor; value: Tensor } {
  const { graph, model, inputs, layers, layer } = context;
  const { keyValueHeads, heads } = model;
  const size = headSize(model);
  const groupSize = heads / keyValueHeads;
  const names = ["q", "k", "v"] as const;
  const projections = names.map((name) => inLayer(layer, `self_attn.${name}_proj`));
  const projected = layers.read(x, projections);
  const parameter = (name: string): Tensor => layers.parameter(inLayer(layer, name));
  const [queries, keys, value] = names.map((name, index) =>
    normalizeHeads(graph, projected[index] as Tensor, { model, parameter, sizes: [B, S], name }),
  ) as [Tensor, Tensor, Tensor];
  const rotate = (tensor: Tensor): Tensor =>
    graph.node("RotaryEmbedding", [tensor, inputs.positions, inputs.cosine, inputs.sine], tensor.shape, {
      domain: microsoft,
      attributes: { interleaved: 0 },
    });
  const byHead = (tensor: Tensor): Tensor => {
    const split = reshape(graph, tensor, [B, S, keyValueHeads, size]);
    return reshape(graph, transpose(graph, split, [0, 2, 1, 3]), [BK, S, size]);
  };
  const key = rotate(keys);
  const query = reshape(graph, rotate(queries), [B, S, keyValueHeads, groupSize, size]);
  const mixed = attendToCacheAndChunk(context, {
    queries: reshape(graph, transpose(graph, query, [0, 2, 3, 1, 4]), [BK, GS, size]),
    cachedKeys: graph.input(`keys.${layer}`, [T, BK, size]),
    cachedValues: graph.input(`values.${layer}`, [T, BK, size]),
    keys: byHead(key),
    values: byHead(value),
  });
  const byGroup = reshape(graph, mixed, [B, keyValueHeads, groupSize, S, size]);
  const joined = reshape(graph, transpose(graph, byGroup, [0, 3, 1, 2, 4]), [N, heads * size]);
  return { output: layers.write(joined, inLayer(layer, "self_attn.o_proj")), key, value };
}

interface CachedAttention {
  readonly queries: Tensor;
  readonly cachedKeys: Tensor;
  readonly cachedValues: Tensor;
  readonly keys: Tensor;
  readonly values: Tensor;
}

function attendToCacheAndChunk(context: LayerContext, tensors: CachedAttention): Tensor {
  const { graph, model, inputs } = context;
  const scale = { float: 1 / Math.sqrt(headSize(model)) };
  const product = (a: Tensor, b: Tensor, columns: Dimension, attributes: Record<string, Attribute>): Tensor =>
    graph.node("FusedMatMul", [a, b], [BK, GS, columns], { domain: microsoft, attributes });
  const { queries, cachedKeys, cachedValues, keys, values } = tensors;
  const cachedScores = product(queries, cachedKeys, T, { transB: 1, transBatchB: 1, alpha: scale });
  const newScores = product(queries, keys, S, { transB: 1, alpha: scale });
  const scores = graph.node(
    "Concat",
    [
      graph.node("Add", [cachedScores, inputs.cacheMask], cachedScores.shape),
      graph.node("Add", [newScores, inputs.chunkMask], newScores.shape),
    ],
    [BK, GS, "TS"],
    { attributes: { axis: -1 } },
  );
  const weights = graph.node("Softmax", [scores], scores.shape, { attributes: { axis: -1 } });
  const [cachedWeights, newWeights] = graph.nodesWithOutputs(
    "Split",
    [weights, graph.shape([T, S])],
    [cachedScores.shape, newScores.shape],
    { attributes: { axis: -1 } },
  ) as [Tensor, Tensor];
  const size = headSize(model);
  return graph.node(
    "Add",
    [product(cachedWeights, cachedValues, size, { transBatchB: 1 }), product(newWeights, values, size, {})],
    [BK, GS, size],
  );
}

function feedForward({ graph, layers, layer }: LayerContext, x: Tensor): Tensor {
  const names = ["gate", "up"].map((name) => inLayer(layer, `mlp.${name}_proj`));
  const [gate, up] = layers.read(x, names) as [Tensor, Tensor];
  return layers.write(gatedSilu(graph, gate, up), inLayer(layer, "mlp.down_proj"));
}
