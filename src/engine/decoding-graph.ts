/**
 * The decoder as a graph that extends sequences with a cache: S new tokens for each of B sequences attend to T
 * cached ones and to each other. S = 1 is decoding, S > 1 the prefill of a prompt or observation in chunks; all
 * three sizes are free, so that one session serves every call.
 *
 * The cache is time-major, (T, B * keyValueHeads, headDim): its first T rows are a contiguous view that is read
 * without a copy (`transBatchB`), and the buffer behind it can be larger.
 */
import { projectHeads } from "./attention-projection.ts";
import { declareWeights, outputWeight, parameter } from "./decoder-graph.ts";
import { type Attribute, type Dimension, Graph, type Tensor } from "./graph.ts";
import { headSize, type ModelOptions } from "./model-options.ts";
import { add, gatedSilu, gatherRows, linear, reshape, rmsNorm, transpose } from "./operators.ts";
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
  const parameters = declareWeights(graph, model);
  const inputs = declareInputs(graph, model);
  const keys: Tensor[] = [];
  const values: Tensor[] = [];
  const embeddings = parameter(parameters, "model.embed_tokens.weight");
  const flatTokens = graph.node("Reshape", [inputs.tokens, graph.integers([-1])], ["N"], { type: "int64" });
  let hidden = graph.node("Gather", [embeddings, flatTokens], ["N", model.width], {
    attributes: { axis: 0 },
  });
  for (let layer = 0; layer < model.layers; layer++) {
    const inLayer = (name: string): Tensor => parameter(parameters, `model.layers.${layer}.${name}`);
    const context: LayerContext = { graph, model, inputs, parameter: inLayer, layer };
    const normalized = rmsNorm(graph, hidden, inLayer("input_layernorm.weight"), model.rmsEpsilon);
    const attended = attend(context, normalized);
    keys.push(attended.key);
    values.push(attended.value);
    hidden = add(graph, hidden, attended.output);
    hidden = add(graph, hidden, feedForward(context, hidden));
  }
  const last = gatherRows(graph, hidden, inputs.last);
  const normalized = rmsNorm(graph, last, parameter(parameters, "model.norm.weight"), model.rmsEpsilon);
  const logits = linear(graph, normalized, outputWeight(parameters));
  const logprobs = graph.node("LogSoftmax", [logits], logits.shape, { attributes: { axis: -1 } });
  const { threads, bits } = options;
  const weights = bits ? await quantizeProducts(graph, options.weights, bits) : options.weights;
  const session = await Session.create(graph, [logprobs, ...keys, ...values], { threads, weights });
  const names = (tensors: readonly Tensor[]): string[] => tensors.map((tensor) => tensor.name);
  return { session, logprobs: logprobs.name, keys: names(keys), values: names(values) };
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
  /** A parameter of the layer by its name below `model.layers.N`. */
  readonly parameter: (name: string) => Tensor;
  readonly layer: number;
}

/** Attention over cache and new tokens; returns the new keys (rotated) and values beside the output. */
function attend(context: LayerContext, x: Tensor): { output: Tensor; key: Tensor; value: Tensor } {
  const { graph, model, inputs, parameter, layer } = context;
  const { keyValueHeads, heads } = model;
  const size = headSize(model);
  const groupSize = heads / keyValueHeads;
  const project = (name: "q" | "k" | "v"): Tensor =>
    projectHeads(graph, x, { model, parameter, sizes: [B, S], name });
  const rotate = (tensor: Tensor): Tensor =>
    graph.node("RotaryEmbedding", [tensor, inputs.positions, inputs.cosine, inputs.sine], tensor.shape, {
      domain: microsoft,
      attributes: { interleaved: 0 },
    });
  const byHead = (tensor: Tensor): Tensor => {
    const split = reshape(graph, tensor, [B, S, keyValueHeads, size]);
    return reshape(graph, transpose(graph, split, [0, 2, 1, 3]), [BK, S, size]);
  };
  const key = rotate(project("k"));
  const value = project("v");
  const query = reshape(graph, rotate(project("q")), [B, S, keyValueHeads, groupSize, size]);
  const mixed = attendToCacheAndChunk(context, {
    queries: reshape(graph, transpose(graph, query, [0, 2, 3, 1, 4]), [BK, GS, size]),
    cachedKeys: graph.input(`keys.${layer}`, [T, BK, size]),
    cachedValues: graph.input(`values.${layer}`, [T, BK, size]),
    keys: byHead(key),
    values: byHead(value),
  });
  const byGroup = reshape(graph, mixed, [B, keyValueHeads, groupSize, S, size]);
  const joined = reshape(graph, transpose(graph, byGroup, [0, 3, 1, 2, 4]), [N, heads * size]);
  return { output: linear(graph, joined, parameter("self_attn.o_proj.weight")), key, value };
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

function feedForward({ graph, model, parameter }: LayerContext, hidden: Tensor): Tensor {
  const weight = (name: string): Tensor => parameter(`${name}.weight`);
  const x = rmsNorm(graph, hidden, weight("post_attention_layernorm"), model.rmsEpsilon);
  const gate = linear(graph, x, weight("mlp.gate_proj"));
  const up = linear(graph, x, weight("mlp.up_proj"));
  return linear(graph, gatedSilu(graph, gate, up), weight("mlp.down_proj"));
}
