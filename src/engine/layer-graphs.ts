/**
 * The graphs of one decoder layer, the way there and the way back. Its weights are fed, so that one session serves all
 * layers. The way there can also return what the way back needs and what is dear to compute again (`Keep`: about the
 * results of its matrix products); norms, activations and, unless it is kept too, attention are computed anew. Where
 * nothing was kept, the way there is simply run again, with the same bits as a result.
 */
import { buildLayer, declareTables, layerParameters } from "./decoder-graph.ts";
import { accumulate, differentiate } from "./differentiate.ts";
import { type Dimension, Graph, type Tensor } from "./graph.ts";
import { type AdaptedModel, adapterShapes } from "./lora.ts";
import { parameterShapes } from "./model-options.ts";
import { Session, type SessionOptions } from "./session.ts";

const firstLayer = "model.layers.0.";

/** Names of parameters of a layer below `model.layers.N.`, with their shapes. */
export function layerShapes({ model, lora }: AdaptedModel): Map<string, readonly number[]> {
  const all = [
    ...parameterShapes({ ...model, layers: 1 }),
    ...(lora ? adapterShapes({ ...model, layers: 1 }, lora) : []),
  ];
  return new Map(
    all
      .filter(([name]) => name.startsWith(firstLayer))
      .map(([name, shape]) => [name.slice(firstLayer.length), shape]),
  );
}

export interface ForwardLayer {
  readonly session: Session;
  /** Name of the hidden states that leave the layer (N, width). */
  readonly output: string;
  /** Outputs that the way back reads under `kept.NAME`, by name. */
  readonly kept: ReadonlyMap<string, Tensor>;
}

/** What distinguishes the graphs of a layer. */
export interface LayerForm {
  /** Whether its rows are packed (`packing.ts`). */
  readonly isPacked: boolean;
  /** Whether what attention computes is kept too, its weights among it. */
  readonly keepsAttention: boolean;
  /** Blocks of attention (`attention-blocks.ts`), whose ends are fed as `blockEnds`, for so many sequences; absent: one, for any number. */
  readonly blocks?: { readonly count: number; readonly batch: number } | undefined;
}

export async function createForwardLayer(
  adapted: AdaptedModel,
  form: LayerForm,
  options: SessionOptions,
): Promise<ForwardLayer> {
  const kept = new Map<string, Tensor>();
  const { graph, output } = addLayer({ adapted, ...form, trained: new Set() }, (value, name) => {
    kept.set(name, value);
    return value;
  });
  const session = await Session.create(graph, [output, ...kept.values()], options);
  return { session, output: output.name, kept };
}

export interface BackwardForm extends LayerForm {
  readonly trained: readonly string[];
}

export interface BackwardLayer {
  readonly session: Session;
  /** Name of the gradient of the hidden states that entered the layer. */
  readonly hiddenGradient: string;
  /** By name of a trained parameter of the layer: the output that holds accumulator plus gradient. */
  readonly gradientOutputs: ReadonlyMap<string, string>;
}

/** `trained` are names below `model.layers.N.`; each gradient is added to the accumulator that is fed for it. */
export async function createBackwardLayer(
  adapted: AdaptedModel,
  { trained, ...form }: BackwardForm,
  options: SessionOptions,
): Promise<BackwardLayer> {
  const layer = { adapted, ...form, trained: new Set(trained) };
  const { graph, hidden, output, parameters } = addLayer(layer, (value, name, graph) =>
    graph.withBackward(graph.input(keptPrefix + name, value.shape), [value], (gradient) => [gradient]),
  );
  const gradient = graph.input("gradient", output.shape);
  const wanted = [hidden, ...trained.map((name) => parameters.get(firstLayer + name) as Tensor)];
  const [hiddenGradient, ...gradients] = differentiate(graph, { output, gradient }, wanted) as [
    Tensor,
    ...Tensor[],
  ];
  const sums = gradients.map((sum, index) => accumulate(graph, trained[index] as string, sum));
  const session = await Session.create(graph, [hiddenGradient, ...sums], options);
  const gradientOutputs = new Map(trained.map((name, index) => [name, (sums[index] as Tensor).name]));
  return { session, hiddenGradient: hiddenGradient.name, gradientOutputs };
}

/** Prefix of the inputs of the way back that hold what was kept. */
export const keptPrefix = "kept.";

interface LayerToAdd extends LayerForm {
  readonly adapted: AdaptedModel;
  /** Names below `model.layers.N.` */
  readonly trained: ReadonlySet<string>;
}

function addLayer(
  { adapted, isPacked, blocks, keepsAttention, trained }: LayerToAdd,
  keep: (value: Tensor, name: string, graph: Graph) => Tensor,
): {
  readonly graph: Graph;
  readonly hidden: Tensor;
  readonly output: Tensor;
  readonly parameters: ReadonlyMap<string, Tensor>;
} {
  const { model } = adapted;
  const graph = new Graph();
  const hidden = graph.parameter("hidden", ["N", model.width]);
  const tables = declareTables(graph, model, { isPacked, blocks });
  const parameters = new Map(
    [...layerShapes(adapted)].map(([name, shape]) => [
      firstLayer + name,
      trained.has(name) ? graph.parameter(name, shape) : graph.input(name, shape),
    ]),
  );
  const inLayer = layerParameters(parameters, 0, adapted);
  const output = buildLayer(graph, hidden, {
    model,
    ...tables,
    ...inLayer,
    keepsAttention,
    keep: (value, name) => keep(value, name, graph),
  });
  return { graph, hidden, output, parameters };
}

/** Sizes that differ from run to run: `batch` sequences of `time` tokens in so many rows, and where blocks of attention end. */
export interface LayerSizes {
  readonly batch: number;
  readonly time: number;
  readonly rows: number;
  readonly blockEnds: readonly number[];
}

/** The sizes of a shape. */
export function resolveShape(
  shape: readonly Dimension[],
  { batch, time, rows, blockEnds }: LayerSizes,
): number[] {
  const ofBlocks = blockEnds.flatMap((end, index): [string, number][] => [
    [`times.${index}`, end - (blockEnds[index - 1] ?? 0)],
    [`keys.${index}`, end],
  ]);
  const sizes = new Map([["B", batch], ["T", time], ["N", rows], ...ofBlocks] as const);
  return shape.map((size) => (typeof size === "number" ? size : (sizes.get(size) as number)));
}
