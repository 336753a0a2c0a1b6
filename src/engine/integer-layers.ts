/**
 * Linear layers in integers (`integer-products.ts`). What they read is rotated in pieces, as in QuaRot (Ashkboos et al.,
 * 2024), and so are their weights. Queries, keys and values are one product, gate and up another. Each head's values are written
 * through rotated weights, so that what attention mixes of them is rotated when the output projection reads it.
 *
 * Not covered: a rotated residual stream, which would spare more rotations. The scales of normalisations, which make outliers
 * small, would then stand in the weights, and the outliers would be rounded at their full size (docs/LOG.md).
 */
import { assert } from "../errors.ts";
import { type DecodingLayers, isBiased, outputLayer } from "./decoding-layers.ts";
import type { Graph, Tensor } from "./graph.ts";
import { pieceSize, rotatePieces } from "./hadamard.ts";
import { type IntegerMatrix, IntegerProducts } from "./integer-products.ts";
import { headSize, type ModelOptions } from "./model-options.ts";
import type { Weight } from "./session.ts";

export class IntegerLayers implements DecodingLayers {
  readonly #graph: Graph;
  readonly #model: ModelOptions;
  readonly #weights: ReadonlyMap<string, Weight>;
  readonly #products: IntegerProducts;

  /** Over weights by the model's names; `highest` is the largest code of a weight (`largestCode`). */
  constructor(
    graph: Graph,
    model: ModelOptions,
    { weights, highest }: { readonly weights: ReadonlyMap<string, Weight>; readonly highest: number },
  ) {
    this.#graph = graph;
    this.#model = model;
    this.#weights = weights;
    this.#products = new IntegerProducts(graph, highest);
  }

  /** The weights of the graph. */
  get values(): ReadonlyMap<string, Weight> {
    return this.#products.values;
  }

  /** Rounds the weights of all layers so far. Throws `EngineError` where memory runs out. */
  async quantize(threads: number): Promise<void> {
    await this.#products.quantize(threads);
  }

  parameter(name: string): Tensor {
    return this.#products.declare(name, this.#weight(name));
  }

  /** One product for all layers, whose outputs are then cut apart. */
  read(x: Tensor, layers: readonly string[]): Tensor[] {
    const product = this.together(x, layers);
    if (layers.length === 1) return [product];
    const sizes = layers.map((layer) => this.#matrix(this.#nameOf(layer)).shape[0]);
    const shapes = sizes.map((size) => ["N", size]);
    return this.#graph.nodesWithOutputs("Split", [product, this.#graph.integers(sizes)], shapes, {
      attributes: { axis: -1 },
    });
  }

  together(x: Tensor, layers: readonly string[]): Tensor {
    const matrices = layers.map((layer) => this.#reader(layer));
    return this.#products.product(this.#products.rotate(x), below(matrices));
  }

  write(x: Tensor, layer: string): Tensor {
    const matrix = this.#matrix(`${layer}.weight`);
    const isAttention = layer.endsWith("o_proj");
    const input = isAttention ? x : this.#products.rotate(x);
    const rowPiece = isAttention ? this.#headPiece : pieceSize(matrix.shape[1]);
    return this.#products.scaledProduct(input, { name: layer, parts: [{ ...matrix, rowPiece }] });
  }

  #reader(layer: string): IntegerMatrix {
    const { shape, data } = this.#matrix(this.#nameOf(layer));
    const part = { shape, data, rowPiece: pieceSize(shape[1]) };
    const bias = isBiased(this.#model, layer) ? this.#floats(`${layer}.bias`) : undefined;
    if (!layer.endsWith("v_proj")) return { name: layer, parts: [part], bias };
    const columnPiece = this.#headPiece;
    return {
      name: layer,
      parts: [{ ...part, columnPiece }],
      bias: bias && rotatePieces(bias, columnPiece),
    };
  }

  #nameOf(layer: string): string {
    if (layer !== outputLayer) return `${layer}.weight`;
    return this.#model.tieEmbeddings ? "model.embed_tokens.weight" : "lm_head.weight";
  }

  get #headPiece(): number {
    return pieceSize(headSize(this.#model));
  }

  #matrix(name: string): { readonly shape: readonly [number, number]; readonly data: Float32Array } {
    return { shape: this.#weight(name).shape as readonly [number, number], data: this.#floats(name) };
  }

  #floats(name: string): Float32Array {
    const { data } = this.#weight(name);
    assert(data instanceof Float32Array, `${name} is quantised already`);
    return data;
  }

  #weight(name: string): Weight {
    const weight = this.#weights.get(name);
    assert(weight, `the weight ${name} has no values`);
    return weight;
  }
}

/** Matrices of as many columns below one another; all of them have a bias, or none. */
function below(matrices: readonly IntegerMatrix[]): IntegerMatrix {
  const biases = matrices.flatMap(({ bias }) => bias ?? []);
  assert(biases.length === 0 || biases.length === matrices.length, "only some of several layers have a bias");
  return {
    name: matrices.map(({ name }) => name).join("+"),
    parts: matrices.flatMap(({ parts }) => parts),
    bias: biases.length > 0 ? Float32Array.from(biases.flatMap((bias) => [...bias])) : undefined,
  };
}
