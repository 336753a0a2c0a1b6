/**
 * Linear layers whose weights have 8 bits, computed in integers: weights are rounded with a scale for each row, the input
 * with one scale for all of it, so that its rows must be of like size. Many rows at once are two to four times as fast as in fp32
 * where the processor multiplies bytes (VNNI, docs/LOG.md). An outlier would cost the other numbers of its input their
 * accuracy; rotations in pieces (`hadamard.ts`) of input and weights spread it.
 */
import { Graph, type Tensor } from "./graph.ts";
import { hadamardMatrix, pieceSize } from "./hadamard.ts";
import { quantizeRows, type RotatedMatrix, type RowQuantization } from "./row-quantization.ts";
import { Session, type Weight } from "./session.ts";

const microsoft = "com.microsoft";
/** Added to the mean square of a row, which may be a row of zeros. */
const leastSquare = 1e-30;

/** A weight of a linear layer, or of several below one another, in the basis of what it is multiplied with. */
export interface IntegerMatrix {
  readonly name: string;
  /** Of as many columns each. */
  readonly parts: readonly RotatedMatrix[];
  /** (rows of all parts) */
  readonly bias?: Float32Array | undefined;
}

export class IntegerProducts {
  /** Of the weights that it has declared. */
  readonly values = new Map<string, Weight>();
  readonly #graph: Graph;
  readonly #highest: number;
  readonly #declared = new Map<string, Tensor>();
  /** Matrices whose codes are still to be computed. */
  #toQuantize: RowQuantization[] = [];

  /** `highest` is the largest code of a weight: 127, or less where the processor's sums of products saturate. */
  constructor(graph: Graph, highest: number) {
    this.#graph = graph;
    this.#highest = highest;
  }

  /** x W^T + bias for x (N, columns) whose rows are of like size, as after a normalisation. */
  product(x: Tensor, { name, parts, bias }: IntegerMatrix): Tensor {
    const columns = x.shape[1] as number;
    const rows = rowsOf(parts);
    const codes = new Int8Array(rows * columns);
    const scales = new Float32Array(rows);
    this.#toQuantize.push({ parts, codes, scales });
    const factors = [
      x,
      this.declare(`${name}.codes`, { data: codes, shape: [columns, rows] }),
      this.declare(`${name}.scales`, { data: scales, shape: [rows] }),
    ];
    const zeroPoint: Tensor = { ...x, name: "" };
    const summand = bias && [zeroPoint, this.declare(`${name}.bias`, { data: bias, shape: [rows] })];
    return this.#graph.node("DynamicQuantizeMatMul", [...factors, ...(summand ?? [])], ["N", rows], {
      domain: microsoft,
    });
  }

  /** x W^T + bias for x (N, columns) whose rows may differ in size: each is divided by its root mean square before, and the product multiplied by it. */
  scaledProduct(x: Tensor, { bias, ...matrix }: IntegerMatrix): Tensor {
    const graph = this.#graph;
    const columns = x.shape[1] as number;
    const rows = rowsOf(matrix.parts);
    const [level, inverses] = graph.nodesWithOutputs(
      "SimplifiedLayerNormalization",
      [x, this.ones(columns)],
      [x.shape, ["N", 1]],
      { attributes: { axis: -1, epsilon: { float: leastSquare } } },
    ) as [Tensor, Tensor];
    const scaled = graph.node("Div", [this.product(level, matrix), inverses], ["N", rows]);
    if (bias === undefined) return scaled;
    const summand = this.declare(`${matrix.name}.bias`, { data: bias, shape: [rows] });
    return graph.node("Add", [scaled, summand], ["N", rows]);
  }

  /** x (N, columns) with its rows rotated in pieces of `pieceSize(columns)`. */
  rotate(x: Tensor): Tensor {
    const graph = this.#graph;
    const columns = x.shape[1] as number;
    const size = pieceSize(columns);
    if (size === 1) return x;
    const matrix = this.declare(`hadamard.${size}`, { data: hadamardMatrix(size), shape: [size, size] });
    const pieces = graph.node("Reshape", [x, graph.integers([-1, size])], ["pieces", size]);
    const turned = graph.node("MatMul", [pieces, matrix], ["pieces", size]);
    return graph.node("Reshape", [turned, graph.integers([-1, columns])], x.shape);
  }

  /** Computes the codes of all products so far, without which `values` are zeros. Throws `EngineError` where memory runs out. */
  async quantize(threads: number): Promise<void> {
    const works = this.#toQuantize;
    this.#toQuantize = [];
    await quantizeRows(works, { highest: this.#highest, threads });
  }

  ones(count: number): Tensor {
    return this.declare(`ones.${count}`, { data: new Float32Array(count).fill(1), shape: [count] });
  }

  /** Declares a weight of the graph once. */
  declare(name: string, weight: Weight): Tensor {
    const known = this.#declared.get(name);
    if (known) return known;
    this.values.set(name, weight);
    const tensor = this.#graph.weight(
      name,
      weight.shape,
      weight.data instanceof Int8Array ? "int8" : "float32",
    );
    this.#declared.set(name, tensor);
    return tensor;
  }
}

function rowsOf(parts: readonly RotatedMatrix[]): number {
  return parts.reduce((sum, { shape }) => sum + shape[0], 0);
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
