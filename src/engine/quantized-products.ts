/**
 * Turns the linear layers of a finished graph into products with quantised weights: each `Gemm` whose right factor is
 * a weight becomes a `MatMulNBits`. What else reads a weight (the lookup in an embedding table that is tied to the
 * output layer) keeps it in fp32, as norms and biases are. Training never sees such a graph.
 */
import { assert } from "../errors.ts";
import type { Graph, Node } from "./graph.ts";
import type { Weight } from "./session.ts";
import { blockSize, blocksOf, quantizeMatrix, type WeightBits } from "./weight-quantization.ts";

/** Activations are rounded to 8 bits, block by block; any other level unpacks 8-bit weights at each product. */
const accuracyLevel = 4;

/** Changes the graph; returns the values of the weights it has now. */
export function quantizeProducts(
  graph: Graph,
  weights: ReadonlyMap<string, Weight>,
  bits: WeightBits,
): Map<string, Weight> {
  const values = new Map<string, Weight>();
  const declared = new Map(graph.weights.map((tensor) => [tensor.name, tensor]));
  for (const [index, node] of graph.nodes.entries()) {
    const weight = declared.get(node.inputs[1] ?? "");
    if (node.operator !== "Gemm" || !weight) continue;
    assert(node.attributes.transB === 1, `${weight.name} is not stored as (out, in)`);
    const { name } = weight;
    const shape = weight.shape as readonly [number, number];
    if (!values.has(codesOf(name))) {
      for (const [part, value] of quantizedParts(name, weights, { shape, bits })) values.set(part, value);
    }
    graph.nodes[index] = quantizedProduct(node, name, { shape, bits });
  }
  const used = new Set(graph.nodes.flatMap(({ inputs }) => inputs));
  const kept = graph.weights.filter(({ name }) => used.has(name));
  graph.weights.length = 0;
  graph.weights.push(...kept);
  for (const [name, { data, shape }] of values) {
    graph.weight(name, shape, data instanceof Uint8Array ? "uint8" : "float32");
  }
  for (const { name } of kept) values.set(name, weightOf(name, weights));
  return values;
}

interface Quantization {
  readonly shape: readonly [number, number];
  readonly bits: WeightBits;
}

const codesOf = (name: string): string => `${name}.codes`;
const scalesOf = (name: string): string => `${name}.scales`;
const zeroPointsOf = (name: string): string => `${name}.zeroPoints`;

function quantizedParts(
  name: string,
  weights: ReadonlyMap<string, Weight>,
  { shape, bits }: Quantization,
): [string, Weight][] {
  const { data } = weightOf(name, weights);
  assert(data instanceof Float32Array, `${name} is quantised already`);
  const [rows, columns] = shape;
  const blocks = blocksOf(columns);
  const { codes, scales, zeroPoints } = quantizeMatrix(data, shape, bits);
  return [
    [codesOf(name), { data: codes, shape: [rows, blocks, (blockSize * bits) / 8] }],
    [scalesOf(name), { data: scales, shape: [rows, blocks] }],
    [zeroPointsOf(name), { data: zeroPoints, shape: [rows, zeroPoints.length / rows] }],
  ];
}

function quantizedProduct(node: Node, name: string, { shape, bits }: Quantization): Node {
  const [rows, columns] = shape;
  const [x = "", , bias] = node.inputs;
  const unused = "";
  return {
    operator: "MatMulNBits",
    domain: "com.microsoft",
    inputs: [
      ...[x, codesOf(name), scalesOf(name), zeroPointsOf(name)],
      ...(bias === undefined ? [] : [unused, bias]),
    ],
    outputs: node.outputs,
    attributes: { K: columns, N: rows, bits, block_size: blockSize, accuracy_level: accuracyLevel },
  };
}

function weightOf(name: string, weights: ReadonlyMap<string, Weight>): Weight {
  const value = weights.get(name);
  assert(value, `the weight ${name} has no values`);
  return value;
}
