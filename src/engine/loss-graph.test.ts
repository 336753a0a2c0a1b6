// Losses in a graph against the same in plain numbers: the critic's, and those of the policy that no recipe uses. (The
// others are checked with a whole model in engine.golden.test.ts.)
import { expect, test } from "vitest";
import type { Loss } from "../algorithm/loss.ts";
import { datumLoss, tokenLoss, valueDatumLoss } from "../algorithm/token-loss.ts";
import { random } from "../shared/random.ts";
import { Graph } from "./graph.ts";
import { buildLoss, buildValueLoss } from "./loss-graph.ts";
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

test.each<Loss>([
  { type: "cispo", low: 0.8, high: 1.2 },
  { type: "cispo", low: 0, high: 4 },
  { type: "dro", beta: 0.1 },
  { type: "dro", beta: 2 },
])("the loss %j and its derivative", async (loss) => {
  const count = 200;
  const chance = random(2, "tokens", loss.type);
  const draw = (scale: number): Float32Array =>
    Float32Array.from({ length: count }, () => scale * chance.normal());
  const [logprobs, advantages] = [draw(1), draw(1)];
  const sampledLogprobs = logprobs.map((logprob, i) => logprob + 0.3 * ((i % 7) - 3));
  const weights = Float32Array.from({ length: count }, (_, i) => (i % 3 === 0 ? 0 : chance.next()));
  const graph = new Graph();
  const input = (name: string) => graph.input(name, ["M"]);
  const nodes = buildLoss(graph, loss, input("logprobs"), {
    weights: input("weights"),
    sampledLogprobs: input("sampledLogprobs"),
    advantages: input("advantages"),
  });
  const session = await Session.create(graph, [nodes.loss, nodes.derivative], { threads: 1 });
  const feeds = Object.entries({ logprobs, weights, sampledLogprobs, advantages });
  const results = await session.run(new Map(feeds.map(([name, data]) => [name, { data, shape: [count] }])), [
    nodes.loss.name,
    nodes.derivative.name,
  ]);
  await session.close();
  const tokens = new Int32Array(count);
  const datum = { inputs: tokens, targets: tokens, weights, logprobs: sampledLogprobs, advantages };
  const expected = datumLoss(loss, datum, logprobs);
  const numbers = (name: string): number[] => Array.from(results.get(name)?.data as Float32Array);
  expect(numbers(nodes.loss.name)[0]).toBeCloseTo(expected.loss, 3);
  for (const [i, derivative] of numbers(nodes.derivative.name).entries())
    expect(derivative).toBeCloseTo(expected.derivatives[i] as number, 4);
});

test.each<Loss>([
  { type: "cispo", low: 0.8, high: 1.2 },
  { type: "dro", beta: 0.5 },
])("the derivative of %j is that of the loss by finite differences, with the ratio of cispo held", (loss) => {
  const token = { weight: 0.7, sampledLogprob: -1.2, advantage: -0.4, referenceLogprob: 0 };
  const at = (logprob: number): number => tokenLoss(loss, { ...token, logprob }).loss;
  // The slope of clip(r) A logprob at logprob 0 is that of the held ratio plus what the ratio's own change would add, times 0.
  const logprob = loss.type === "cispo" ? 0 : -0.9;
  const slope = (at(logprob + 1e-5) - at(logprob - 1e-5)) / 2e-5;
  expect(tokenLoss(loss, { ...token, logprob }).derivative).toBeCloseTo(slope, 4);
});
