/**
 * The decoder as a graph that extends sequences with a cache: one new token for each of B slots of the cache, or S new
 * tokens of one slot. All sizes are free, so that one session serves every call. Only the N tokens that are wanted pass
 * through the linear layers; for attention they are spread over the slots (`decoding-attention.ts`), of which others take
 * part with any of them.
 */
import { attendToCache, type CacheInputs } from "./decoding-attention.ts";
import { type DecodingLayers, inLayer, outputLayer, plainLayers } from "./decoding-layers.ts";
import { Graph, type Tensor } from "./graph.ts";
import { IntegerLayers } from "./integer-layers.ts";
import { largestCode } from "./integer-products.ts";
import { headSize, type ModelOptions } from "./model-options.ts";
import { gatedSilu, gatherRows, rmsNorm } from "./operators.ts";
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
  await integer?.quantize(threads);
  const used = integer?.values ?? (bits === 4 ? await quantizeProducts(graph, weights, threads) : weights);
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
    const attended = attendToCache(context, before.normalized);
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

interface Inputs extends CacheInputs {
  /** New tokens (N). */
  readonly tokens: Tensor;
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

function feedForward({ graph, layers, layer }: LayerContext, x: Tensor): Tensor {
  const names = ["gate", "up"].map((name) => inLayer(layer, `mlp.${name}_proj`));
  const [gate, up] = layers.read(x, names) as [Tensor, Tensor];
  return layers.write(gatedSilu(graph, gate, up), inLayer(layer, "mlp.down_proj"));
}
