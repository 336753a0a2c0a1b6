/**
 * How fast this machine multiplies matrices of a model's size, measured in about a second: what estimates of time are
 * scaled by. Rows are many as in training, or few as in decoding, where reading the weights takes the time.
 */
import { Graph } from "./graph.ts";
import type { ModelOptions } from "./model-options.ts";
import { linear } from "./operators.ts";
import { Session } from "./session.ts";
import type { MachineSpeed } from "./time-estimate.ts";

/** How a model's products are measured. */
export interface Probe {
  readonly model: Pick<ModelOptions, "width" | "feedForward">;
  readonly threads: number;
  /** Sequences that are sampled at once. */
  readonly slots: number;
  /** Milliseconds of a clock that only rises. */
  readonly now: () => number;
  /** By that clock, of each of two measurements. */
  readonly seconds: number;
}

/** The speed of products of a model's size, by the seconds of the probe's clock. */
export async function measureSpeed({ model, slots, ...setting }: Probe): Promise<MachineSpeed> {
  const shape = { inner: model.width, columns: model.feedForward };
  return {
    training: await productRate({ rows: 1024, ...shape }, setting),
    sampling: await productRate({ rows: slots, ...shape }, setting),
  };
}

export interface ProductShape {
  readonly rows: number;
  /** Columns of the left factor, and of the product. */
  readonly inner: number;
  readonly columns: number;
}

/** Floating-point operations a second of a product of this shape, the median of rounds within `seconds`. */
export async function productRate(
  { rows, inner, columns }: ProductShape,
  {
    threads,
    now,
    seconds,
  }: { readonly threads: number; readonly now: () => number; readonly seconds: number },
): Promise<number> {
  const graph = new Graph();
  const product = linear(graph, graph.input("x", [rows, inner]), graph.input("weight", [columns, inner]));
  const session = await Session.create(graph, [product], { threads });
  try {
    const feeds = new Map([
      ["x", { data: new Float32Array(rows * inner).fill(0.5), shape: [rows, inner] }],
      ["weight", { data: new Float32Array(columns * inner).fill(0.5), shape: [columns, inner] }],
    ]);
    const into = new Map([
      [product.name, { data: new Float32Array(rows * columns), shape: [rows, columns] }],
    ]);
    await session.run(feeds, [], into);
    const end = now() + 1000 * seconds;
    const rounds: number[] = [];
    for (let started = now(); rounds.length === 0 || started < end; started = now()) {
      await session.run(feeds, [], into);
      rounds.push(now() - started);
    }
    const median = rounds.sort((a, b) => a - b)[Math.floor(rounds.length / 2)] as number;
    return (2 * rows * inner * columns) / (Math.max(median, 1e-6) / 1000);
  } finally {
    await session.close();
  }
}
