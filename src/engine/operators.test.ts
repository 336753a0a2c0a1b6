import { describe, expect, it } from "vitest";
import { type Random, random } from "../shared/random.ts";
import { attention } from "./attention.ts";
import { differentiate } from "./differentiate.ts";
import { Graph, type Tensor } from "./graph.ts";
import * as operators from "./operators.ts";
import { type Feed, Session } from "./session.ts";
import { tokenLogprobs } from "./token-logprobs.ts";

// The derivative of sum(output * probe) with respect to every parameter entry, by the graph and by central
// differences. float32 with step 1e-2 leaves an error of some 1e-3 of the largest entry.
interface Case {
  readonly name: string;
  readonly build: (graph: Graph) => Tensor;
  readonly feeds?: Readonly<Record<string, Feed>>;
}

const integers = (values: readonly number[], shape: readonly number[]): Feed => ({
  data: BigInt64Array.from(values, BigInt),
  shape,
});
const angles = [0, 0.3, 0.9, 0.1, 0.5, 1.2];
const rotaryFeeds = {
  positions: integers([0, 1, 2, 0, 1, 2], [2, 3]),
  cosine: { data: Float32Array.from(angles, Math.cos), shape: [3, 2] },
  sine: { data: Float32Array.from(angles, Math.sin), shape: [3, 2] },
  negatedSine: { data: Float32Array.from(angles, (angle) => -Math.sin(angle)), shape: [3, 2] },
};

const cases: readonly Case[] = [
  {
    name: "add with broadcasting on both sides",
    build: (g) => operators.add(g, g.parameter("a", [3, 1]), g.parameter("b", [4])),
  },
  {
    name: "subtract",
    build: (g) => operators.subtract(g, g.parameter("a", [2, 3]), g.parameter("b", [3])),
  },
  {
    name: "multiply with broadcasting",
    build: (g) => operators.multiply(g, g.parameter("a", [2, 3]), g.parameter("b", [2, 1])),
  },
  { name: "reshape", build: (g) => operators.reshape(g, g.parameter("a", [2, 6]), [3, 4]) },
  { name: "transpose", build: (g) => operators.transpose(g, g.parameter("a", [2, 3, 4]), [2, 0, 1]) },
  {
    name: "linear with bias",
    build: (g) =>
      operators.linear(g, g.parameter("x", [3, 4]), g.parameter("w", [2, 4]), g.parameter("b", [2])),
  },
  {
    name: "batchedProduct",
    build: (g) =>
      operators.batchedProduct(g, g.parameter("a", [2, 3, 4]), g.parameter("b", [2, 4, 5]), { scale: 0.7 }),
  },
  {
    name: "batchedProduct with its right factor transposed",
    build: (g) =>
      operators.batchedProduct(g, g.parameter("a", [2, 3, 4]), g.parameter("b", [2, 5, 4]), {
        transposeB: true,
        scale: 0.7,
      }),
  },
  {
    name: "selectRows",
    build: (g) => operators.selectRows(g, g.parameter("x", [4, 3]), g.input("indexes", [2], "int64")),
    feeds: { indexes: integers([3, 1], [2]) },
  },
  {
    name: "rmsNorm",
    build: (g) => operators.rmsNorm(g, g.parameter("x", [3, 4]), g.parameter("w", [4]), 1e-5),
  },
  {
    name: "rotate",
    build: (g) =>
      operators.rotate(g, g.parameter("x", [2, 3, 8]), {
        positions: g.input("positions", [2, 3], "int64"),
        cosine: g.input("cosine", [3, 2]),
        sine: g.input("sine", [3, 2]),
        negatedSine: g.input("negatedSine", [3, 2]),
      }),
    feeds: rotaryFeeds,
  },
  {
    name: "attention",
    build: (g) =>
      attention(
        g,
        {
          query: g.parameter("q", [2, 3, 8]),
          key: g.parameter("k", [2, 3, 4]),
          value: g.parameter("v", [2, 3, 4]),
          ends: {
            lastPositions: g.input("lastPositions", [2], "int32"),
            tokens: g.input("tokens", [1], "int32"),
          },
        },
        { heads: 2, keyValueHeads: 1, headSize: 4, sizes: [2, 3] },
      ),
    feeds: {
      lastPositions: { data: Int32Array.of(2, 2), shape: [2] },
      tokens: { data: Int32Array.of(3), shape: [1] },
    },
  },
  {
    name: "attention in blocks",
    build: (g) =>
      attention(
        g,
        {
          query: g.parameter("q", [2, 5, 8]),
          key: g.parameter("k", [2, 5, 4]),
          value: g.parameter("v", [2, 5, 4]),
          ends: {
            lastPositions: g.input("lastPositions", [2], "int32"),
            tokens: g.input("tokens", [1], "int32"),
          },
          blocks: { ends: g.input("blockEnds", [3], "int64"), batch: 2 },
        },
        { heads: 2, keyValueHeads: 1, headSize: 4, sizes: [2, 5] },
      ),
    feeds: {
      lastPositions: { data: Int32Array.of(4, 4), shape: [2] },
      tokens: { data: Int32Array.of(5), shape: [1] },
      blockEnds: integers([2, 3, 5], [3]),
    },
  },
  {
    name: "gatedSilu",
    build: (g) => operators.gatedSilu(g, g.parameter("gate", [3, 4]), g.parameter("up", [3, 4])),
  },
  {
    name: "tokenLogprobs",
    build: (g) =>
      tokenLogprobs(g, g.parameter("x", [3, 4]), {
        parts: [g.parameter("w", [5, 4])],
        indexes: g.input("indexes", [3], "int64"),
      }),
    feeds: { indexes: integers([4, 0, 2], [3]) },
  },
  {
    name: "tokenLogprobs in parts",
    build: (g) =>
      tokenLogprobs(g, g.parameter("x", [4, 4]), {
        parts: [g.parameter("first", [2, 4]), g.parameter("second", [3, 4]), g.parameter("third", [1, 4])],
        indexes: g.input("indexes", [4], "int64"),
      }),
    feeds: { indexes: integers([1, 5, 2, 4], [4]) },
  },
];

describe("the derivative of each operator equals finite differences", () => {
  it.each(cases)("$name", async ({ build, feeds = {} }) => {
    const graph = new Graph();
    const output = build(graph);
    const parameters = graph.inputs.filter((input) => input.requiresGradient);
    const probe = graph.input("probe", output.shape);
    const value = graph.node("ReduceSum", [graph.node("Mul", [output, probe], output.shape)], [], {
      attributes: { keepdims: 0 },
    });
    const gradients = differentiate(graph, { output, gradient: probe }, parameters);
    const session = await Session.create(graph, [value, ...gradients], { threads: 1 });
    const chance = random(1, "finite differences");
    const data = new Map<string, Feed>(Object.entries(feeds));
    for (const tensor of [...parameters, probe]) data.set(tensor.name, normalFeed(tensor, chance));
    const evaluate = async (): Promise<number> =>
      ((await session.run(data, [value.name])).get(value.name) as Feed).data[0] as number;
    const analytic = await session.run(
      data,
      gradients.map((gradient) => gradient.name),
    );
    for (const [index, parameter] of parameters.entries()) {
      const entries = (data.get(parameter.name) as Feed).data as Float32Array;
      const gradient = (analytic.get((gradients[index] as Tensor).name) as Feed).data as Float32Array;
      expect(gradient.length).toBe(entries.length);
      const scale = Math.max(1, ...gradient.map(Math.abs));
      for (const [entry, original] of [...entries].entries()) {
        entries[entry] = original + 1e-2;
        const above = await evaluate();
        entries[entry] = original - 1e-2;
        const below = await evaluate();
        entries[entry] = original;
        expect(Math.abs((above - below) / 2e-2 - (gradient[entry] as number)) / scale).toBeLessThan(3e-3);
      }
    }
    await session.close();
  });
});

function normalFeed(tensor: Tensor, chance: Random): Feed {
  const shape = tensor.shape as number[];
  const data = Float32Array.from({ length: shape.reduce((a, b) => a * b, 1) }, () => chance.normal());
  return { data, shape };
}
