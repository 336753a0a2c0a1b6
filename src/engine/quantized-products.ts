/**
 * Turns the linear layers of a finished graph into products with quantised weights: each `Gemm` whose right factor is
 * a weight becomes a `MatMulNBits` and a small product that adds the blocks' offsets. What else reads a weight (the
 * lookup in an embedding table that is tied to the output layer) keeps it in fp32, as norms and biases are. The output
 * layer has never less than 8 bits: it costs the most accuracy, and at one row of logits as much time in 4.
 */
import { assert } from "../errors.ts";
import type { Dimension, Graph, Node, Tensor } from "./graph.ts";
import type { Weight } from "./session.ts";
import { blockSize, blocksOf, quantizeMatrix, type WeightBits } from "./weight-quantization.ts";

/** Activations are rounded to 8 bits, block by block; any other level unpacks 8-bit weights at each product. */
const accuracyLevel = 4;
const outputWeights = ["lm_head.weight", "model.embed_tokens.weight"];

/** Changes the graph; returns the values of the weights it has now. */
export function quantizeProducts(
  graph: Graph,
  weights: ReadonlyMap<string, Weight>,
  bits: WeightBits,
): Map<string, Weight> {
  const declared = new Map(graph.weights.map((tensor) => [tensor.name, tensor]));
  const rewriter = new ProductRewriter(graph, weights);
  for (const node of graph.nodes.splice(0)) {
    const weight = node.operator === "Gemm" ? declared.get(node.inputs[1] ?? "") : undefined;
    if (weight === undefined) graph.nodes.push(node);
    else rewriter.replace(node, weight, outputWeights.includes(weight.name) ? 8 : bits);
  }
  const used = new Set(graph.nodes.flatMap(({ inputs }) => inputs));
  const kept = graph.weights.filter(({ name }) => used.has(name));
  graph.weights.splice(0, graph.weights.length, ...kept);
  const values = new Map(rewriter.values);
  for (const { name } of kept) if (!values.has(name)) values.set(name, weightOf(name, weights));
  return values;
}

class ProductRewriter {
  /** Of the weights that it has declared. */
  readonly values = new Map<string, Weight>();
  readonly #graph: Graph;
  readonly #weights: ReadonlyMap<string, Weight>;
  /** Sums of the blocks of what was multiplied so far: layers that read the same share them. */
  readonly #sums = new Map<string, Tensor>();

  constructor(graph: Graph, weights: ReadonlyMap<string, Weight>) {
    this.#graph = graph;
    this.#weights = weights;
  }

  /** x W^T + bias in terms of codes, scales, zero points and offsets. */
  replace(node: Node, weight: Tensor, bits: WeightBits): void {
    assert(node.attributes.transB === 1, `${weight.name} is not stored as (out, in)`);
    const [rows, columns] = weight.shape as readonly [number, number];
    const parts = this.#partsOf(weight, bits);
    const [x = "", , bias] = node.inputs;
    const unused: Tensor = { name: "", shape: [], type: "float32", requiresGradient: false };
    const input = tensor(x, ["N", columns]);
    const sums = this.#blockSums(input, columns);
    const biases = bias === undefined ? [] : [unused, tensor(bias, [rows])];
    const inputs = [input, parts.codes, parts.scales, parts.zeroPoints, ...biases];
    const product = this.#graph.node("MatMulNBits", inputs, ["N", rows], {
      domain: "com.microsoft",
      attributes: { K: columns, N: rows, bits, block_size: blockSize, accuracy_level: accuracyLevel },
    });
    this.#graph.nodes.push({
      operator: "Gemm",
      domain: "",
      inputs: [sums.name, parts.offsets.name, product.name],
      outputs: node.outputs,
      attributes: { transB: 1 },
    });
  }

  #partsOf(weight: Tensor, bits: WeightBits): Record<"codes" | "scales" | "zeroPoints" | "offsets", Tensor> {
    const { name } = weight;
    const [rows, columns] = weight.shape as readonly [number, number];
    const { data } = weightOf(name, this.#weights);
    assert(data instanceof Float32Array, `${name} is quantised already`);
    const blocks = blocksOf(columns);
    const matrix = quantizeMatrix(data, [rows, columns], bits);
    const declare = (
      part: "codes" | "scales" | "zeroPoints" | "offsets",
      shape: readonly number[],
    ): Tensor => {
      const values = matrix[part];
      this.values.set(`${name}.${part}`, { data: values, shape });
      return this.#graph.weight(`${name}.${part}`, shape, values instanceof Uint8Array ? "uint8" : "float32");
    };
    return {
      codes: declare("codes", [rows, blocks, (blockSize * bits) / 8]),
      scales: declare("scales", [rows, blocks]),
      zeroPoints: declare("zeroPoints", [rows, matrix.zeroPoints.length / rows]),
      offsets: declare("offsets", [rows, blocks]),
    };
  }

  /** x (N, columns) to (N, blocks); what fills up the last block is zero. */
  #blockSums(x: Tensor, columns: number): Tensor {
    const known = this.#sums.get(x.name);
    if (known) return known;
    const graph = this.#graph;
    const blocks = blocksOf(columns);
    const missing = blocks * blockSize - columns;
    const full =
      missing === 0
        ? x
        : graph.node("Pad", [x, graph.integers([0, 0, 0, missing])], ["N", blocks * blockSize]);
    const cut = graph.node(
      "Reshape",
      [full, graph.integers([-1, blocks, blockSize])],
      ["N", blocks, blockSize],
    );
    const sums = graph.node("ReduceSum", [cut, graph.integers([2])], ["N", blocks], {
      attributes: { keepdims: 0 },
    });
    this.#sums.set(x.name, sums);
    return sums;
  }
}

function tensor(name: string, shape: readonly Dimension[]): Tensor {
  return { name, shape, type: "float32", requiresGradient: false };
}

function weightOf(name: string, weights: ReadonlyMap<string, Weight>): Weight {
  const value = weights.get(name);
  assert(value, `the weight ${name} has no values`);
  return value;
}
