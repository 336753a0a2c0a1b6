import { describe, expect, test } from "vitest";
import { random } from "../shared/random.ts";
import { buildLayer, declareTables, layerParameters } from "./decoder-graph.ts";
import { differentiate } from "./differentiate.ts";
import { tinyModel } from "./engine.fixture.ts";
import { Graph, type Tensor } from "./graph.ts";
import { type AdaptedModel, adapterShapes, initializeAdapters, trainableNames } from "./lora.ts";
import { adaptedLinear } from "./lora-graph.ts";
import { mergeAdapters } from "./lora-merge.ts";
import { type LoraOptions, loraOptionsSchema } from "./lora-options.ts";
import { parameterShapes } from "./model-options.ts";
import { type Parameter, zerosLike } from "./parameters.ts";
import { type Feed, Session } from "./session.ts";

const lora: LoraOptions = { rank: 2, alpha: 3, targets: ["q_proj", "down_proj"] };

describe("adapters", () => {
  test("default to rank 16 on all seven projections", () => {
    expect(loraOptionsSchema.parse({})).toEqual({
      rank: 16,
      alpha: 32,
      targets: ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"],
    });
  });

  test("have PEFT's names and shapes, in the order of the network", () => {
    expect([...adapterShapes({ ...tinyModel, layers: 1 }, lora)]).toEqual([
      ["model.layers.0.self_attn.q_proj.lora_A.weight", [2, 16]],
      ["model.layers.0.self_attn.q_proj.lora_B.weight", [16, 2]],
      ["model.layers.0.mlp.down_proj.lora_A.weight", [2, 24]],
      ["model.layers.0.mlp.down_proj.lora_B.weight", [16, 2]],
    ]);
  });

  test("start with A uniform within 1/sqrt(in), as kaiming_uniform_(a=sqrt(5)) draws it, and B zero", () => {
    const wide = { ...tinyModel, width: 256, heads: 4, layers: 1 };
    const adapters = initializeAdapters(wide, { rank: 64, alpha: 1, targets: ["q_proj"] }, 5);
    const [down, up] = [...adapters.values()] as [Parameter, Parameter];
    const bound = 1 / 16;
    expect(Math.max(...down.data)).toBeLessThanOrEqual(bound);
    expect(Math.max(...down.data)).toBeGreaterThan(0.99 * bound);
    expect(Math.min(...down.data)).toBeLessThan(-0.99 * bound);
    // The variance of a uniform distribution is a third of its bound's square; 16,384 draws.
    const variance = down.data.reduce((sum, value) => sum + value * value, 0) / down.data.length;
    expect(variance / (bound * bound)).toBeCloseTo(1 / 3, 2);
    expect(up.data.every((value) => value === 0)).toBe(true);
  });

  test("merge as W + alpha/rank B A, into new arrays for the targets alone", async () => {
    const model = { ...tinyModel, layers: 1, width: 16 };
    const shapes: [string, readonly number[]][] = [
      ["model.layers.0.self_attn.q_proj.weight", [16, 16]],
      ["model.norm.weight", [16]],
    ];
    const base = new Map(shapes.map(([name, shape]) => [name, filled(shape, 1)]));
    const only = { ...lora, targets: ["q_proj" as const] };
    const adapters = zerosLike(initializeAdapters(model, only, 1));
    const [down, up] = [...adapters.values()] as [Parameter, Parameter];
    down.data.set([2, 5]); // A[0] = (2, 5, 0, …)
    up.data.set([0, 0, 10]); // B[1] = (10, 0)
    const merged = await mergeAdapters(base, adapters, { model, lora: only, threads: 1 });
    const expected = filled([16, 16], 1);
    expected.data.set([1 + 1.5 * 10 * 2, 1 + 1.5 * 10 * 5], 16);
    expect(merged.get("model.layers.0.self_attn.q_proj.weight")).toEqual(expected);
    expect(merged.get("model.norm.weight")).toBe(base.get("model.norm.weight"));
    expect(base.get("model.layers.0.self_attn.q_proj.weight")).toEqual(filled([16, 16], 1));
  });
});

describe("an adapted projection", () => {
  test("has derivatives equal to finite differences, and none for its frozen weight", async () => {
    const graph = new Graph();
    const output = adaptedLinear(graph, graph.parameter("x", [3, 4]), {
      weight: graph.input("w", [5, 4]),
      bias: graph.input("b", [5]),
      adapter: { down: graph.parameter("a", [2, 4]), up: graph.parameter("u", [5, 2]), scale: 1.5 },
    });
    const parameters = graph.inputs.filter(({ requiresGradient }) => requiresGradient);
    const probe = graph.input("probe", [3, 5]);
    const value = graph.node("ReduceSum", [graph.node("Mul", [output, probe], [3, 5])], [], {
      attributes: { keepdims: 0 },
    });
    const gradients = differentiate(graph, { output, gradient: probe }, parameters);
    const session = await Session.create(graph, [value, ...gradients], { threads: 1 });
    const chance = random(1, "adapted projection");
    const feeds = new Map<string, Feed>(
      graph.inputs.map(({ name, shape }) => [
        name,
        { shape: shape as number[], data: filled(shape as number[], 0).data.map(() => chance.normal()) },
      ]),
    );
    const run = async (wanted: Tensor): Promise<Float32Array> =>
      ((await session.run(feeds, [wanted.name])).get(wanted.name) as Feed).data as Float32Array;
    for (const [index, { name }] of parameters.entries()) {
      const entries = (feeds.get(name) as Feed).data as Float32Array;
      const gradient = await run(gradients[index] as Tensor);
      const scale = Math.max(1, ...gradient.map(Math.abs));
      for (const [entry, original] of [...entries].entries()) {
        entries[entry] = original + 1e-2;
        const above = (await run(value))[0] as number;
        entries[entry] = original - 1e-2;
        const below = (await run(value))[0] as number;
        entries[entry] = original;
        expect(Math.abs((above - below) / 2e-2 - (gradient[entry] as number)) / scale).toBeLessThan(3e-3);
      }
    }
    await session.close();
  });

  test("leaves out every node of the gradients of frozen weights", () => {
    const [whole, adapted] = [{ model: tinyModel }, { model: tinyModel, lora }].map(countWeightGradients);
    // A product with its left factor transposed is the gradient of a weight: of seven matrices and the scales of two norms.
    expect(whole).toBe(9);
    expect(adapted).toBe(2 * lora.targets.length);
  });
});

/** Gradients of weights that the way back through a layer computes. */
function countWeightGradients(adapted: AdaptedModel): number {
  const { model } = adapted;
  const graph = new Graph();
  const names = new Set([...trainableNames(adapted)].filter((name) => name.startsWith("model.layers.0.")));
  const shapes = [...parameterShapes(model), ...(adapted.lora ? adapterShapes(model, adapted.lora) : [])];
  const parameters = new Map(
    shapes.map(([name, shape]) => [
      name,
      names.has(name) ? graph.parameter(name, shape) : graph.input(name, shape),
    ]),
  );
  const hidden = graph.parameter("hidden", ["N", model.width]);
  const tables = declareTables(graph, model);
  const inLayer = layerParameters(parameters, 0, adapted);
  const output = buildLayer(graph, hidden, { model, ...tables, ...inLayer, keep: (value) => value });
  const forward = graph.nodes.length;
  const trained = [...names].map((name) => parameters.get(name) as Tensor);
  differentiate(graph, { output, gradient: graph.input("gradient", output.shape) }, [hidden, ...trained]);
  return graph.nodes
    .slice(forward)
    .filter(({ operator, attributes }) => operator === "Gemm" && attributes.transA === 1).length;
}

function filled(shape: readonly number[], value: number): Parameter {
  return { shape, data: new Float32Array(shape.reduce((a, b) => a * b, 1)).fill(value) };
}
