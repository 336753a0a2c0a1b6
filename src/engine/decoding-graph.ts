/**
 * The decoder as a graph that extends sequences with a cache: one new token for each of B slots of the cache, or S new
 * tokens of one slot. All sizes are free, so that one session serves every call. Only the N tokens that are wanted pass
 * through the linear layers; for attention they are spread over the slots, of which others take part with any of them.
 *
 * `GroupQueryAttention` writes keys and values into the cache, in place: what it is fed as past and what it returns as
 * present are the same arrays. Each sequence has a length of its own. Its factor 1 / sqrt(headDim) stands in the rotary tables,
 * half of it with queries and half with keys: products without a factor take a kernel that does not pack keys first
 * (docs/LOG.md). Asked for its weights too, it leaves out a path that reads keys and values more slowly.
 */
import { normalizeHeads } from "./attention-projection.ts";
import { type DecodingLayers, outputLayer, plainLayers } from "./decoding-layers.ts";
import { Graph, type Tensor } from "./graph.ts";
import { attentionWidth, narrowHeads, widenHeads } from "./head-width.ts";
import { IntegerLayers } from "./integer-layers.ts";
import { largestCode } from "./integer-products.ts";
import { headSize, type ModelOptions } from "./model-options.ts";
import { gatedSilu, gatherRows, reshape, rmsNorm } from "./operators.ts";
import { quantizeProducts } from "./quantized-products.ts";
import { Session, type SessionOptions, type Weight } from "./session.ts";
import type { WeightBits } from "./weight-quantization.ts";

const microsoft = "com.microsoft";
const B = "B";
const S = "S";
/** Places of B * S. */
const BS = "BS";
/** Tokens that are run. */
const N = "N";
/** Sequences whose next token is wanted. */
const M = "M";
/** Rows of the cache. */
const C = "C";
/** Positions in the rotary tables. */
const P = "P";

export interface DecodingOptions extends SessionOptions {
  /** Bits of the weights of linear layers; absent: they stay fp32. */
  readonly bits?: WeightBits | undefined;
}

export interface DecodingGraph {
  readonly session: Session;
  /** Natural log-probabilities of the next token (M, V). */
  readonly logprobs: string;
  /** By layer: the whole cache (B, keyValueHeads, C, attentionWidth), to be bound to the arrays that are fed as `keys.N` and `values.N`. */
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
  /** New tokens (N). */
  readonly tokens: Tensor;
  /** Positions (B, S). */
  readonly positions: Tensor;
  readonly cosine: Tensor;
  readonly sine: Tensor;
  /** Of the N tokens that of each place (B * S), and the place of each token (N). */
  readonly places: Tensor;
  readonly rows: Tensor;
  /** Position of the last new token of each sequence (B), and one more than the greatest of them (1), int32. */
  readonly ends: Tensor;
  readonly longest: Tensor;
  /** Of the N tokens those after which a token is wanted (M). */
  readonly last: Tensor;
}

function declareInputs(graph: Graph, model: ModelOptions): Inputs {
  const half = headSize(model) / 2;
  return {
    tokens: graph.input("tokens", [N], "int64"),
    positions: graph.input("positions", [B, S], "int64"),
    cosine: graph.input("cosine", [P, half]),
    sine: graph.input("sine", [P, half]),
    places: graph.input("places", [BS], "int64"),
    rows: graph.input("rows", [N], "int64"),
    ends: graph.input("ends", [B], "int32"),
    longest: graph.input("longest", [1], "int32"),
    last: graph.input("last", [M], "int64"),
  };
}

interface LayerContext {
  readonly graph: Graph;
  readonly model: ModelOptions;
  readonly inputs: Inputs;
  readonly layers: DecodingLayers;
  readonly layer: number;
}

/** Attention of the new tokens over the cache, which then holds them too; returns the whole cache beside the output. */
function attend(context: LayerContext, x: Tensor): { output: Tensor; key: Tensor; value: Tensor } {
  const { graph, model, inputs, layers, layer } = context;
  const { keyValueHeads, heads } = model;
  const size = headSize(model);
  const names = ["q", "k", "v"] as const;
  const projected = layers.read(
    x,
    names.map((name) => inLayer(layer, `self_attn.${name}_proj`)),
  );
  const parameter = (name: string): Tensor => layers.parameter(inLayer(layer, name));
  const [queries, keys, value] = names.map((name, index) => {
    const spread = gatherRows(graph, projected[index] as Tensor, inputs.places);
    return normalizeHeads(graph, spread, { model, parameter, sizes: [B, S], name });
  }) as [Tensor, Tensor, Tensor];
  const rotate = (tensor: Tensor): Tensor =>
    graph.node("RotaryEmbedding", [tensor, inputs.positions, inputs.cosine, inputs.sine], tensor.shape, {
      domain: microsoft,
      attributes: { interleaved: 0 },
    });
  const widen = (tensor: Tensor, count: number): Tensor =>
    widenHeads(graph, tensor, { count, headSize: size, sizes: [B, S] });
  const attended = attendToCache(context, {
    query: widen(rotate(queries), heads),
    key: widen(rotate(keys), keyValueHeads),
    value: widen(value, keyValueHeads),
  });
  const mixed = narrowHeads(graph, attended.output, { count: heads, headSize: size, sizes: [B, S] });
  const joined = gatherRows(graph, reshape(graph, mixed, [BS, heads * size]), inputs.rows);
  return {
    ...attended,
    output: layers.write({ ...joined, shape: [N, heads * size] }, inLayer(layer, "self_attn.o_proj")),
  };
}

/** All heads side by side, (B, S, heads * attentionWidth), and those of keys and values. */
interface Projections {
  readonly query: Tensor;
  readonly key: Tensor;
  readonly value: Tensor;
}

function attendToCache(
  { graph, model, inputs, layer }: LayerContext,
  { query, key, value }: Projections,
): { output: Tensor; key: Tensor; value: Tensor } {
  const { heads, keyValueHeads } = model;
  const shape = [B, keyValueHeads, C, attentionWidth(headSize(model))];
  const past = ["keys", "values"].map((name) => graph.input(`${name}.${layer}`, shape));
  const afterSoftmax = 2;
  const [output, allKeys, allValues] = graph.nodesWithOutputs(
    "GroupQueryAttention",
    [query, key, value, ...past, inputs.ends, inputs.longest],
    [query.shape, shape, shape, [B, heads, S, "longest"]],
    {
      domain: microsoft,
      attributes: {
        num_heads: heads,
        kv_num_heads: keyValueHeads,
        scale: { float: 1 },
        qk_output: afterSoftmax,
      },
    },
  ) as [Tensor, Tensor, Tensor];
  return { output, key: allKeys, value: allValues };
}

function feedForward({ graph, layers, layer }: LayerContext, x: Tensor): Tensor {
  const names = ["gate", "up"].map((name) => inLayer(layer, `mlp.${name}_proj`));
  const [gate, up] = layers.read(x, names) as [Tensor, Tensor];
  return layers.write(gatedSilu(graph, gate, up), inLayer(layer, "mlp.down_proj"));
}
