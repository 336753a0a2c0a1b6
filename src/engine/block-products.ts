/**
 * Linear layers whose weights have 4 bits in blocks: each product becomes a `MatMulNBits` and a small product that adds
 * the blocks' offsets.
 */
import type { Dimension, Graph, Node, Tensor } from "./graph.ts";
import type { Weight } from "./session.ts";
import { blockSize, blocksOf, quantizeMatrix } from "./weight-quantization.ts";

/** A weight (rows, columns) of a linear layer. */
export interface NamedMatrix {
  readonly name: string;
  readonly shape: readonly [number, number];
  readonly data: Float32Array;
}

/** Activations are rounded to 8 bits, block by block. */
const accuracyLevel = 4;

export class BlockProducts {
  /** Of the weights that it has declared. */
  readonly values = new Map<string, Weight>();
  readonly #graph: Graph;
  /** Sums of the blocks of what was multiplied so far: layers that read the same share them. */
  readonly #sums = new Map<string, Tensor>();

  constructor(graph: Graph) {
    this.#graph = graph;
  }

  /** Adds what computes x W^T + bias in the place of `node`, a `Gemm` of x (N, columns) with `weight` (rows, columns) and perhaps a bias. */
  replace(node: Node, x: Tensor, weight: NamedMatrix): void {
    const [rows, columns] = weight.shape;
    const parts = this.#partsOf(weight);
    const [, , bias] = node.inputs;
    const sums = this.#blockSums(x, columns);
    const biases = bias === undefined ? [] : [tensor("", []), tensor(bias, [rows])];
    const inputs = [x, parts.codes, parts.scales, parts.zeroPoints, ...biases];
    const product = this.#graph.node("MatMulNBits", inputs, ["N", rows], {
      domain: "com.microsoft",
      attributes: { K: columns, N: rows, bits: 4, block_size: blockSize, accuracy_level: accuracyLevel },
    });
    this.#graph.nodes.push({
      operator: "Gemm",
      domain: "",
      inputs: [sums.name, parts.offsets.name, product.name],
      outputs: node.outputs,
      attributes: { transB: 1 },
    });
  }

  #partsOf({
    name,
    shape,
    data,
  }: NamedMatrix): Record<"codes" | "scales" | "zeroPoints" | "offsets", Tensor> {
    const [rows, columns] = shape;
    const blocks = blocksOf(columns);
    const matrix = quantizeMatrix(data, shape);
    const declare = (
      part: "codes" | "scales" | "zeroPoints" | "offsets",
      sizes: readonly number[],
    ): Tensor => {
      const values = matrix[part];
      this.values.set(`${name}.${part}`, { data: values, shape: sizes });
      return this.#graph.weight(`${name}.${part}`, sizes, values instanceof Uint8Array ? "uint8" : "float32");
    };
    return {
      codes: declare("codes", [rows, blocks, blockSize / 2]),
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
