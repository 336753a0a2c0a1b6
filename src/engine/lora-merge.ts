/**
 * The weights of a plain model that computes what a model with adapters does: W + scale B A for every adapted projection.
 * The products run in ONNX Runtime, one matrix after the other into a new array; the base is not changed.
 */
import { Graph } from "./graph.ts";
import { adaptedProjections, adapterScale } from "./lora.ts";
import type { LoraOptions } from "./lora-options.ts";
import type { ModelOptions } from "./model-options.ts";
import type { Parameter, ParameterSet } from "./parameters.ts";
import { Session } from "./session.ts";

/** What is merged, and with how many threads. */
export interface MergeSetting {
  readonly model: ModelOptions;
  readonly lora: LoraOptions;
  readonly threads: number;
}

/** New arrays for the adapted weights; all others are those of `base`. */
export async function mergeAdapters(
  base: ParameterSet,
  adapters: ParameterSet,
  { model, lora, threads }: MergeSetting,
): Promise<Map<string, Parameter>> {
  const graph = new Graph();
  const inputs = [
    graph.input("up", ["O", lora.rank]),
    graph.input("down", [lora.rank, "I"]),
    graph.input("weight", ["O", "I"]),
  ];
  const sum = graph.node("Gemm", inputs, ["O", "I"], {
    attributes: { alpha: { float: adapterScale(lora) } },
  });
  const session = await Session.create(graph, [sum], { threads });
  const merged = new Map(base);
  try {
    for (const { weight, up, down } of adaptedProjections(model, lora)) {
      const original = base.get(weight) as Parameter;
      const { shape } = original;
      const target = { shape, data: new Float32Array(original.data.length) };
      const feeds = new Map([
        ["up", adapters.get(up) as Parameter],
        ["down", adapters.get(down) as Parameter],
        ["weight", original],
      ]);
      await session.run(feeds, [], new Map([[sum.name, target]]));
      merged.set(weight, target);
    }
  } finally {
    await session.close();
  }
  return merged;
}
