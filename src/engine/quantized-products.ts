/**
 * Turns the linear layers of a finished graph into products with weights of 4 bits: each `Gemm` whose right factor is a
 * weight becomes one in blocks (`block-products.ts`). What else reads a weight (the lookup in an embedding table that is tied
 * to the output layer) keeps it in fp32, as norms and biases are. The output layer has 8 bits (`integer-products.ts`): it costs
 * the most accuracy, and at one row of logits as much time in 4.
 */
import { assert } from "../errors.ts";
import { BlockProducts, type NamedMatrix } from "./block-products.ts";
import type { Graph, Tensor } from "./graph.ts";
import { pieceSize } from "./hadamard.ts";
import { IntegerProducts, largestCode } from "./integer-products.ts";
import type { Weight } from "./session.ts";

const outputWeights = ["lm_head.weight", "model.embed_tokens.weight"];

/** Changes the graph; returns the values of the weights it has now. Throws `EngineError` where memory runs out. */
export async function quantizeProducts(
  graph: Graph,
  weights: ReadonlyMap<string, Weight>,
  threads: number,
): Promise<Map<string, Weight>> {
  const declared = new Map(graph.weights.map((tensor) => [tensor.name, tensor]));
  const integers = new IntegerProducts(graph, await largestCode());
  const blocks = new BlockProducts(graph);
  for (const node of graph.nodes.splice(0)) {
    const weight = node.operator === "Gemm" ? declared.get(node.inputs[1] ?? "") : undefined;
    if (weight === undefined) {
      graph.nodes.push(node);
      continue;
    }
    assert(node.attributes.transB === 1, `${weight.name} is not stored as (out, in)`);
    const matrix = matrixOf(weight, weights);
    const x: Tensor = { ...weight, name: node.inputs[0] as string, shape: ["N", matrix.shape[1]] };
    if (!outputWeights.includes(weight.name)) blocks.replace(node, x, matrix);
    else {
      const { name, shape, data } = matrix;
      const part = { shape, data, rowPiece: pieceSize(shape[1]) };
      const product = integers.scaledProduct(integers.rotate(x), { name, parts: [part] });
      graph.nodes.push({
        operator: "Identity",
        domain: "",
        inputs: [product.name],
        outputs: node.outputs,
        attributes: {},
      });
    }
  }
  await integers.quantize(threads);
  const used = new Set(graph.nodes.flatMap(({ inputs }) => inputs));
  const kept = graph.weights.filter(({ name }) => used.has(name));
  graph.weights.splice(0, graph.weights.length, ...kept);
  const values = new Map([...blocks.values, ...integers.values]);
  for (const { name } of kept) if (!values.has(name)) values.set(name, weightOf(name, weights));
  return values;
}

function matrixOf({ name, shape }: Tensor, weights: ReadonlyMap<string, Weight>): NamedMatrix {
  const { data } = weightOf(name, weights);
  assert(data instanceof Float32Array, `${name} is quantised already`);
  return { name, shape: shape as readonly [number, number], data };
}

function weightOf(name: string, weights: ReadonlyMap<string, Weight>): Weight {
  const value = weights.get(name);
  assert(value, `the weight ${name} has no values`);
  return value;
}
