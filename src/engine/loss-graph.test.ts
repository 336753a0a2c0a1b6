// The critic's loss in a graph against the same in plain numbers. (The policy's losses are checked with a whole model in
// engine.golden.test.ts.)
import { expect, test } from "vitest";
import { valueDatumLoss } from "../algorithm/token-loss.ts";
import { random } from "../shared/random.ts";
import { Graph } from "./graph.ts";
import { buildValueLoss } from "./loss-graph.ts";
import { Session } from "./session.ts";

test.each([0.05, 0.5, 100])("the loss of values and its derivative, clipped at %f", async (clip) => {
  const count = 200;
  const chance = random(1, "values", clip);
  const draw = (): Float32Array => Float32Array.from({ length: count }, () => chance.normal());
  const [values, oldValues, returns] = [draw(), draw(), draw()];
  const weights = Float32Array.from({ length: count }, (_, i) => (i % 3 === 0 ? 0 : chance.next()));
  const loss = { type: "value", clip } as const;

  const graph = new Graph();
  const input = (name: string) => graph.input(name, ["M"]);
  const nodes = buildValueLoss(graph, loss, input("values"), {
    weights: input("weights"),
    oldValues: input("oldValues"),
    returns: input("returns"),
  });
  const session = await Session.create(graph, [nodes.loss, nodes.derivative], { threads: 1 });
  const feeds = Object.entries({ values, weights, oldValues, returns });
  const results = await session.run(new Map(feeds.map(([name, data]) => [name, { data, shape: [count] }])), [
    nodes.loss.name,
    nodes.derivative.name,
  ]);
  await session.close();

  const inputs = new Int32Array(count);
  const expected = valueDatumLoss(loss, { inputs, weights, values: oldValues, returns }, values);
  const numbers = (name: string): number[] => Array.from(results.get(name)?.data as Float32Array);
  expect(numbers(nodes.loss.name)[0]).toBeCloseTo(expected.loss, 3);
  for (const [i, derivative] of numbers(nodes.derivative.name).entries())
    expect(derivative).toBeCloseTo(expected.derivatives[i] as number, 5);
});

test("a value within the range keeps its gradient, however old value and range round", async () => {
  const oldValues = Float32Array.from({ length: 1000 }, (_, i) => i / 997);
  const values = oldValues.map((value, i) => value + i / 3331);
  const ones = new Float32Array(1000).fill(1);
  const returns = new Float32Array(1000).fill(5);
  const graph = new Graph();
  const input = (name: string) => graph.input(name, ["M"]);
  const { derivative } = buildValueLoss(graph, { type: "value", clip: 0.5 }, input("values"), {
    weights: input("weights"),
    oldValues: input("oldValues"),
    returns: input("returns"),
  });
  const session = await Session.create(graph, [derivative], { threads: 1 });
  const feeds = Object.entries({ values, weights: ones, oldValues, returns });
  const results = await session.run(new Map(feeds.map(([name, data]) => [name, { data, shape: [1000] }])), [
    derivative.name,
  ]);
  await session.close();
  const slopes = results.get(derivative.name)?.data as Float32Array;
  expect([...slopes].filter((slope) => slope === 0)).toEqual([]);
});
