/**
 * How fast this machine multiplies matrices in fp32, by ONNX Runtime, and what share of it a training step reaches. Useful
 * operations only: activations that are computed a second time to save memory do not count.
 */
import { performance } from "node:perf_hooks";
import { Graph } from "../src/engine/graph.ts";
import { headSize, type ModelOptions, parameterCount } from "../src/engine/model-options.ts";
import { Session } from "../src/engine/session.ts";

const size = 2048;
const repetitions = 8;

/** Operations per second of the fastest of several products of two square matrices. */
export async function productRate(threads: number): Promise<number> {
  const graph = new Graph();
  const [a, b] = [graph.input("a", [size, size]), graph.input("b", [size, size])];
  const product = graph.node("MatMul", [a, b], [size, size]);
  const session = await Session.create(graph, [product], { threads });
  const matrix = (step: number) => ({
    shape: [size, size],
    data: Float32Array.from({ length: size * size }, (_, i) => ((i * step) % 17) / 17 - 0.5),
  });
  const feeds = new Map([
    ["a", matrix(3)],
    ["b", matrix(5)],
  ]);
  const into = new Map([[product.name, { shape: [size, size], data: new Float32Array(size * size) }]]);
  let fastest = 0;
  try {
    for (let i = 0; i < repetitions; i++) {
      const start = performance.now();
      await session.run(feeds, [], into);
      fastest = Math.max(fastest, (2 * size ** 3) / ((performance.now() - start) / 1000));
    }
  } finally {
    await session.close();
  }
  return fastest;
}

/**
 * Operations that training on one token takes, of sequences of `length`: forward 2 for each weight of a product (the
 * embedding table counts where it is the output layer) and 2 length (query width) for causal attention in each layer;
 * backward twice as much.
 */
export function trainingOperations(model: ModelOptions, length: number): number {
  const table = model.vocabularySize * model.width;
  const weights = parameterCount(model) - (model.tieEmbeddings ? 0 : table);
  return 3 * (2 * weights + 2 * length * model.layers * model.heads * headSize(model));
}
