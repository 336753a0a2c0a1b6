/**
 * Attention of one layer over the cache. `GroupQueryAttention` writes keys and values of new tokens into it, in place: what it is
 * fed as past and what it returns as present are the same arrays. Each sequence has a length of its own.
 *
 * The factor 1 / sqrt(headDim) stands in the rotary tables, half of it with queries and half with keys: products without a
 * factor take a kernel that does not pack keys first. Asked for its weights too, the operator leaves out a path that reads keys
 * and values more slowly (docs/decisions/2026-11-30-onnxruntime-through-koffi.md).
 */
import { normalizeHeads } from "./attention-projection.ts";
import { type DecodingLayers, inLayer } from "./decoding-layers.ts";
import type { Graph, Tensor } from "./graph.ts";
import { attentionWidth, narrowHeads, widenHeads } from "./head-width.ts";
import { hasQueryKeyNorm, headSize, type ModelOptions } from "./model-options.ts";
import { gatherRows, reshape } from "./operators.ts";

const microsoft = "com.microsoft";
const B = "B";
const S = "S";
const BS = "BS";
const N = "N";
/** Rows of the cache. */
const C = "C";

/** How the N tokens of a run stand in the slots and rows of the cache. */
export interface CacheInputs {
  /** Positions (B, S). */
  readonly positions: Tensor;
  /** Rotary tables (P, headDim / 2), times headDim^(-1/4). */
  readonly cosine: Tensor;
  readonly sine: Tensor;
  /** Of the N tokens that of each place (B * S), and the place of each token (N). */
  readonly places: Tensor;
  readonly rows: Tensor;
  /** Position of the last new token of each sequence (B), and one more than the greatest of them (1), int32. */
  readonly ends: Tensor;
  readonly longest: Tensor;
}

export interface LayerContext {
  readonly graph: Graph;
  readonly model: ModelOptions;
  readonly inputs: CacheInputs;
  readonly layers: DecodingLayers;
  readonly layer: number;
}

/** The output (N, width) for x (N, width), and the whole cache, which then holds the new tokens too: (B, keyValueHeads, C, attentionWidth). */
export function attendToCache(
  context: LayerContext,
  x: Tensor,
): { readonly output: Tensor; readonly key: Tensor; readonly value: Tensor } {
  const { graph, model, inputs, layers, layer } = context;
  const { heads } = model;
  const size = headSize(model);
  const { output, ...cache } = attend(context, projections(context, x));
  const mixed = narrowHeads(graph, output, { count: heads, headSize: size, sizes: [B, S] });
  const joined = gatherRows(graph, reshape(graph, mixed, [BS, heads * size]), inputs.rows);
  const flat = { ...joined, shape: [N, heads * size] };
  return { output: layers.write(flat, inLayer(layer, "self_attn.o_proj")), ...cache };
}

/** Queries, keys and values: side by side in one, (B, S, all heads), to be rotated by the operator; or each, rotated and widened. */
type Projections =
  | { readonly packed: Tensor }
  | { readonly query: Tensor; readonly key: Tensor; readonly value: Tensor };

function projections(context: LayerContext, x: Tensor): Projections {
  const { graph, model, inputs, layers, layer } = context;
  const { heads, keyValueHeads } = model;
  const size = headSize(model);
  const names = ["q", "k", "v"] as const;
  const linear = names.map((name) => inLayer(layer, `self_attn.${name}_proj`));
  // The operator rotates heads of some sixteens.
  if (layers.together && !hasQueryKeyNorm(model) && size % 16 === 0) {
    const spread = gatherRows(graph, layers.together(x, linear), inputs.places);
    return { packed: reshape(graph, spread, [B, S, (heads + 2 * keyValueHeads) * size]) };
  }
  const projected = layers.read(x, linear);
  const counts = { q: heads, k: keyValueHeads, v: keyValueHeads };
  const parameter = (name: string): Tensor => layers.parameter(inLayer(layer, name));
  const [query, key, value] = names.map((name, index) => {
    const spread = gatherRows(graph, projected[index] as Tensor, inputs.places);
    const normalized = normalizeHeads(graph, spread, { model, parameter, sizes: [B, S], name });
    const turned = name === "v" ? normalized : rotate(context, normalized);
    return widenHeads(graph, turned, { count: counts[name], headSize: size, sizes: [B, S] });
  }) as [Tensor, Tensor, Tensor];
  return { query, key, value };
}

function rotate({ graph, inputs }: LayerContext, x: Tensor): Tensor {
  const { positions, cosine, sine } = inputs;
  const attributes = { interleaved: 0 };
  return graph.node("RotaryEmbedding", [x, positions, cosine, sine], x.shape, {
    domain: microsoft,
    attributes,
  });
}

function attend(
  { graph, model, inputs, layer }: LayerContext,
  projected: Projections,
): { readonly output: Tensor; readonly key: Tensor; readonly value: Tensor } {
  const { heads, keyValueHeads } = model;
  const width = attentionWidth(headSize(model));
  const shape = [B, keyValueHeads, C, width];
  const past = ["keys", "values"].map((name) => graph.input(`${name}.${layer}`, shape));
  const isPacked = "packed" in projected;
  const heard = isPacked
    ? [projected.packed, absent, absent]
    : [projected.query, projected.key, projected.value];
  const tables = isPacked ? [inputs.cosine, inputs.sine] : [];
  const afterSoftmax = 2;
  const attributes = {
    num_heads: heads,
    kv_num_heads: keyValueHeads,
    scale: { float: 1 },
    do_rotary: isPacked ? 1 : 0,
    qk_output: afterSoftmax,
  };
  const [output, key, value] = graph.nodesWithOutputs(
    "GroupQueryAttention",
    [...heard, ...past, inputs.ends, inputs.longest, ...tables],
    [[B, S, heads * width], shape, shape, [B, heads, S, "longest"]],
    { domain: microsoft, attributes },
  ) as [Tensor, Tensor, Tensor];
  return { output, key, value };
}

/** An optional input that is not given. */
const absent: Tensor = { name: "", shape: [], type: "float32", requiresGradient: false };
