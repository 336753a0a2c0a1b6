/**
 * A projection with low-rank adapters (`lora-options.ts`) in a graph for training. The derivatives are those of the two
 * small products; where the weight is frozen, none is made for it.
 */
import type { Graph, Tensor } from "./graph.ts";
import { adapterNames, adapterScale } from "./lora.ts";
import type { LoraOptions } from "./lora-options.ts";
import { linear, multiply } from "./operators.ts";

/** A (rank, in) and B (out, rank) of one projection. */
export interface Adapter {
  readonly down: Tensor;
  readonly up: Tensor;
  readonly scale: number;
}

/** The adapter of the projection `name`, or nothing where it has none. */
export function findAdapter(
  parameters: ReadonlyMap<string, Tensor>,
  name: string,
  lora: LoraOptions | undefined,
): Adapter | undefined {
  const names = adapterNames(name);
  const down = parameters.get(names.down);
  const up = parameters.get(names.up);
  return lora && down && up ? { down, up, scale: adapterScale(lora) } : undefined;
}

/** x (N, in) to x Wᵀ + scale (x Aᵀ) Bᵀ + bias (N, out); without an adapter a plain linear layer. */
export function adaptedLinear(
  graph: Graph,
  x: Tensor,
  projection: {
    readonly weight: Tensor;
    readonly bias?: Tensor | undefined;
    readonly adapter?: Adapter | undefined;
  },
): Tensor {
  const { weight, bias, adapter } = projection;
  const plain = linear(graph, x, weight, bias);
  if (!adapter) return plain;
  const narrow = multiply(graph, linear(graph, x, adapter.down), graph.scalar(adapter.scale));
  return linear(graph, narrow, adapter.up, plain);
}
