import { expect, test } from "vitest";
import { random } from "../shared/random.ts";
import { Graph } from "./graph.ts";
import { type Feed, Session } from "./session.ts";
import { tokenLogprobs } from "./token-logprobs.ts";

const [rows, width, vocabulary] = [6, 5, 11];

async function logprobs(
  sizes: readonly number[],
  { x, table, indexes }: Record<"x" | "table", Float64Array> & { readonly indexes: readonly number[] },
): Promise<Float32Array> {
  const graph = new Graph();
  const parts = sizes.map((size, index) => graph.input(`part${index}`, [size, width]));
  const output = tokenLogprobs(graph, graph.input("x", ["M", width]), {
    parts,
    indexes: graph.input("indexes", ["M"], "int64"),
  });
  const session = await Session.create(graph, [output], { threads: 1 });
  let start = 0;
  const feeds = new Map<string, Feed>([
    ["x", { data: Float32Array.from(x), shape: [rows, width] }],
    ["indexes", { data: BigInt64Array.from(indexes, BigInt), shape: [rows] }],
  ]);
  for (const [index, size] of sizes.entries()) {
    const data = Float32Array.from(table.subarray(start * width, (start + size) * width));
    feeds.set(`part${index}`, { data, shape: [size, width] });
    start += size;
  }
  const results = await session.run(feeds, [output.name]);
  await session.close();
  return (results.get(output.name) as Feed).data as Float32Array;
}

/** In double precision, as the formula reads. */
function naive(x: Float64Array, table: Float64Array, { row, index }: { row: number; index: number }): number {
  const logits = Array.from({ length: vocabulary }, (_, token) => {
    let sum = 0;
    for (let i = 0; i < width; i++)
      sum += (x[row * width + i] as number) * (table[token * width + i] as number);
    return sum;
  });
  const highest = Math.max(...logits);
  const sum = logits.reduce((all, logit) => all + Math.exp(logit - highest), 0);
  return (logits[index] as number) - highest - Math.log(sum);
}

// Logits of some tens of thousands: whole parts have no probability that a float could hold.
test.each([1, 100])(
  "is the log of the softmax however the matrix is cut, logits times %d",
  async (factor) => {
    const chance = random(1, "token logprobs", factor);
    const normal = (count: number, scale: number): Float64Array =>
      Float64Array.from({ length: count }, () => Math.fround(scale * chance.normal()));
    const x = normal(rows * width, factor);
    const table = normal(vocabulary * width, factor);
    const indexes = [0, 3, 4, 7, 8, 10];
    for (const sizes of [[11], [4, 4, 3], [1, 9, 1]]) {
      const values = await logprobs(sizes, { x, table, indexes });
      for (const [row, index] of indexes.entries()) {
        const expected = naive(x, table, { row, index });
        expect(Math.abs((values[row] as number) - expected)).toBeLessThan(1e-5 * Math.max(1, factor ** 2));
        expect(values[row]).toBeLessThanOrEqual(0);
      }
    }
  },
);
