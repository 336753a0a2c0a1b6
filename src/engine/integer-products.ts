/**
 * Linear layers whose weights have 8 bits, computed in integers. Input and weights are rotated in pieces (`hadamard.ts`),
 * then each row of the input is divided by its largest number, rounded to 8 bits, multiplied and scaled back: an outlier
 * costs accuracy in its own row alone, and little there. Many rows at once are two to four times as fast as in fp32 where
 * the processor multiplies bytes (VNNI, docs/LOG.md).
 */
import { Graph, type Node, type Tensor } from "./graph.ts";
import { hadamardMatrix, pieceSize, rotatePieces } from "./hadamard.ts";
import { quantizeRows } from "./row-quantization.ts";
import { Session, type Weight } from "./session.ts";

const microsoft = "com.microsoft";
/** Instead of the largest number of a row of zeros. */
const leastPeak = 1e-30;

/** A matrix (N, columns) as bytes: value = (code - zero point) * scale * peak of the row. */
interface Rounded {
  readonly codes: Tensor;
  readonly scale: Tensor;
  readonly zeroPoint: Tensor;
  /** (N, 1) */
  readonly peaks: Tensor;
}

/** A weight (rows, columns) of a linear layer. */
export interface NamedMatrix {
  readonly name: string;
  readonly shape: readonly [number, number];
  readonly data: Float32Array;
}

export class IntegerProducts {
  /** Of the weights that it has declared. */
  readonly values = new Map<string, Weight>();
  readonly #graph: Graph;
  readonly #highest: number;
  /** Inputs that were rounded already: layers that read the same share them. */
  readonly #rotations = new Map<number, Tensor>();
  readonly #rounded = new Map<string, Rounded>();

  /** `highest` is the largest code of a weight: 127, or less where the processor's sums of products saturate. */
  constructor(graph: Graph, highest: number) {
    this.#graph = graph;
    this.#highest = highest;
  }

  /** Adds what computes x W^T + bias in the place of `node`, a `Gemm` of x (N, columns) with `weight` (rows, columns) and perhaps a bias. */
  replace(node: Node, x: Tensor, weight: NamedMatrix): void {
    const graph = this.#graph;
    const [rows, columns] = weight.shape;
    const turned = rotatePieces(weight.data, pieceSize(columns));
    const { codes, scales } = quantizeRows(turned, [rows, columns], this.#highest);
    const matrix = this.#declare(`${weight.name}.codes`, { data: codes, shape: [columns, rows] });
    const scale = this.#declare(`${weight.name}.scales`, { data: scales, shape: [rows] });
    const rounded = this.#round(x);
    const product = graph.node(
      "MatMulIntegerToFloat",
      [rounded.codes, matrix, rounded.scale, scale, rounded.zeroPoint],
      ["N", rows],
      { domain: microsoft },
    );
    const [, , bias] = node.inputs;
    const scaled = bias === undefined ? node.outputs : [`${node.outputs[0]}.unbiased`];
    this.#add("Mul", [product.name, rounded.peaks.name], scaled);
    if (bias !== undefined) this.#add("Add", [...scaled, bias], node.outputs);
  }

  /** A node whose outputs have their names already. */
  #add(operator: string, inputs: readonly string[], outputs: readonly string[]): void {
    this.#graph.nodes.push({ operator, domain: "", inputs, outputs, attributes: {} });
  }

  #round(x: Tensor): Rounded {
    const known = this.#rounded.get(x.name);
    if (known) return known;
    const graph = this.#graph;
    const turned = this.#rotate(x);
    const magnitudes = graph.node("Abs", [turned], x.shape);
    const most = graph.node("ReduceMax", [magnitudes, graph.integers([-1])], ["N", 1], {
      attributes: { keepdims: 1 },
    });
    const peaks = graph.node("Max", [most, graph.scalar(leastPeak)], ["N", 1]);
    const level = graph.node("Div", [turned, peaks], x.shape);
    const [codes, scale, zeroPoint] = graph.nodesWithOutputs(
      "DynamicQuantizeLinear",
      [level],
      [x.shape, [], []],
    ) as [Tensor, Tensor, Tensor];
    const rounded = { codes, scale, zeroPoint, peaks };
    this.#rounded.set(x.name, rounded);
    return rounded;
  }

  #rotate(x: Tensor): Tensor {
    const graph = this.#graph;
    const columns = x.shape[1] as number;
    const size = pieceSize(columns);
    if (size === 1) return x;
    let matrix = this.#rotations.get(size);
    if (!matrix) {
      matrix = this.#declare(`hadamard.${size}`, { data: hadamardMatrix(size), shape: [size, size] });
      this.#rotations.set(size, matrix);
    }
    const pieces = graph.node("Reshape", [x, graph.integers([-1, size])], ["pieces", size]);
    const turned = graph.node("MatMul", [pieces, matrix], ["pieces", size]);
    return graph.node("Reshape", [turned, graph.integers([-1, columns])], x.shape);
  }

  #declare(name: string, weight: Weight & { readonly shape: readonly number[] }): Tensor {
    this.values.set(name, weight);
    return this.#graph.weight(name, weight.shape, weight.data instanceof Int8Array ? "int8" : "float32");
  }
}

const mostCode = 127;
/** Two products with it, and a byte of 255, still fit into 16 bits. */
const safeCode = 63;
let largest: Promise<number> | undefined;

/**
 * The largest code of a weight with which this processor's integer products are exact, tried once: processors without VNNI
 * add pairs of products in 16 bits, which saturate.
 */
export function largestCode(): Promise<number> {
  largest ??= areSumsExact().then((isExact) => (isExact ? mostCode : safeCode));
  return largest;
}

async function areSumsExact(): Promise<boolean> {
  const columns = 64;
  const graph = new Graph();
  const x = graph.input("x", ["N", columns]);
  const weight = graph.weight("w", [columns, 1], "int8");
  const [codes, scale, zeroPoint] = graph.nodesWithOutputs("DynamicQuantizeLinear", [x], [x.shape, [], []]);
  const inputs = [codes, weight, scale, graph.scalar(1), zeroPoint] as Tensor[];
  const sum = graph.node("MatMulIntegerToFloat", inputs, ["N", 1], { domain: microsoft });
  const weights = new Map([["w", { data: new Int8Array(columns).fill(mostCode), shape: [columns, 1] }]]);
  const session = await Session.create(graph, [sum], { threads: 1, weights });
  const ones = { data: new Float32Array(columns).fill(1), shape: [1, columns] };
  const results = await session.run(new Map([["x", ones]]), [sum.name]);
  await session.close();
  const exact = columns * mostCode;
  return Math.abs((results.get(sum.name)?.data[0] as number) - exact) < 1e-3 * exact;
}
