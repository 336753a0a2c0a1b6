import { existsSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { random } from "../shared/random.ts";
import { Graph } from "./graph.ts";
import { pieceSize } from "./hadamard.ts";
import { IntegerProducts, largestCode } from "./integer-products.ts";
import { Session } from "./session.ts";

/** x W^T + bias in integers, and exactly; the last number of the first row of x is an outlier. */
async function products(
  rows: number,
  columns: number,
): Promise<{ rounded: Float32Array; exact: Float32Array }> {
  const chance = random(1, "products", `${rows}`);
  const numbers = (count: number): Float32Array =>
    Float32Array.from({ length: count }, () => chance.normal());
  const weight = { name: "w", shape: [rows, columns] as const, data: numbers(rows * columns) };
  const [bias, x] = [numbers(rows), numbers(3 * columns)];
  x[columns - 1] = 200;
  x.fill(0, 2 * columns);
  const graph = new Graph();
  const input = graph.input("x", ["N", columns]);
  const integers = new IntegerProducts(graph, await largestCode());
  const turned = { name: weight.name, parts: [{ ...weight, rowPiece: pieceSize(columns) }], bias };
  const output = integers.scaledProduct(integers.rotate(input), turned);
  await integers.quantize(1);
  const session = await Session.create(graph, [output], { threads: 1, weights: integers.values });
  const results = await session.run(new Map([["x", { data: x, shape: [3, columns] }]]), [output.name]);
  await session.close();
  const exact = Float32Array.from({ length: 3 * rows }, (_, i) => {
    const [n, row] = [Math.floor(i / rows), i % rows];
    let sum = bias[row] as number;
    for (let c = 0; c < columns; c++)
      sum += (x[n * columns + c] as number) * (weight.data[row * columns + c] as number);
    return sum;
  });
  return { rounded: results.get(output.name)?.data as Float32Array, exact };
}

test.each([
  [48, 192],
  [5, 20],
  [4, 7],
])(
  "%i rows of %i weights come within a hundredth of the product's norm, zeros give the bias",
  async (rows, columns) => {
    const { rounded, exact } = await products(rows, columns);
    for (let n = 0; n < 3; n++) {
      const difference = rounded
        .subarray(n * rows, (n + 1) * rows)
        .map((value, i) => value - (exact[n * rows + i] as number));
      const norm = Math.hypot(...exact.subarray(n * rows, (n + 1) * rows));
      expect(Math.hypot(...difference)).toBeLessThan(0.015 * norm);
      expect(rounded.length).toBe(3 * rows);
    }
    expect([...rounded.subarray(2 * rows)]).toEqual([...exact.subarray(2 * rows)]);
  },
);

const flags = existsSync("/proc/cpuinfo") ? readFileSync("/proc/cpuinfo", "utf8") : "";
const hasByteProducts = /\bavx512_vnni\b|\bavx_vnni\b/.test(flags);

test.skipIf(!hasByteProducts)("a processor with VNNI keeps 8 bits of each weight", async () => {
  expect(await largestCode()).toBe(127);
});
