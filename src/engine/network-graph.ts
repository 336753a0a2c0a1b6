/**
 * The whole network in one graph: layers, what is selected of their result, a head, and with a loss the way back. All that
 * the way back needs stays in the runtime's own memory, and a micro-batch is a single run. For small models; large ones
 * go layer by layer (`layer-graphs.ts`), where memory can be told apart and given back.
 */
import { buildLayer, declareTables, layerParameters } from "./decoder-graph.ts";
import { accumulate, differentiate } from "./differentiate.ts";
import { embeddingTable } from "./embeddings.ts";
import { Graph, type Tensor } from "./graph.ts";
import { type Head, headRows } from "./head.ts";
import { type AdaptedModel, adapterShapes } from "./lora.ts";
import { parameterShapes } from "./model-options.ts";
import { selectRows } from "./operators.ts";
import { Session, type SessionOptions } from "./session.ts";

export interface NetworkGraph {
  readonly session: Session;
  /** Names of the parameters that are fed. */
  readonly parameters: readonly string[];
  /** Name of the head's values (M). */
  readonly values: string;
  /** With a loss: the name of its sum. */
  readonly loss?: string;
  /** Where embeddings are trained: name of the gradient of the hidden states that enter the layers (N, width). */
  readonly hiddenGradient?: string;
  /** By name of a trained parameter: the output that holds accumulator plus gradient. */
  readonly gradientOutputs: ReadonlyMap<string, string>;
}

/** Inputs: `hidden` (N, width), `places` (M) among its rows, those of `declareTables` and of the head, parameters, accumulators. */
export async function createNetworkGraph(
  adapted: AdaptedModel,
  { head, trained }: { readonly head: Head; readonly trained: ReadonlySet<string> },
  options: SessionOptions,
): Promise<NetworkGraph> {
  const { model } = adapted;
  const graph = new Graph();
  const parameters = declareParameters(graph, adapted, { head, trained });
  const declareHidden = trained.has(embeddingTable) ? "parameter" : "input";
  const hidden = graph[declareHidden]("hidden", ["N", model.width]);
  const places = graph.input("places", [headRows], "int64");
  const rows = new Map([...head.inputs].map(([name, type]) => [name, graph.input(name, [headRows], type)]));
  const parameter = (name: string): Tensor => parameters.get(name) as Tensor;
  const nodes = head.build(
    graph,
    selectRows(graph, buildLayers(graph, adapted, { hidden, parameters }), places),
    {
      parameter,
      inParts: (name) => [parameter(name)],
      row: (name) => rows.get(name) as Tensor,
    },
  );
  const names = { parameters: [...parameters.keys()], values: nodes.values.name };
  if (!nodes.loss) {
    const session = await Session.create(graph, [nodes.values], options);
    return { session, ...names, gradientOutputs: new Map() };
  }
  const { loss, derivative } = nodes.loss;
  const reached = [...parameters].filter(([name]) => trained.has(name));
  const wanted = [...reached.map(([, tensor]) => tensor), ...(hidden.requiresGradient ? [hidden] : [])];
  const gradients = differentiate(graph, { output: nodes.values, gradient: derivative }, wanted);
  const sums = reached.map(([name], index) => accumulate(graph, name, gradients[index] as Tensor));
  const ofHidden = gradients.slice(reached.length);
  const session = await Session.create(graph, [loss, nodes.values, ...ofHidden, ...sums], options);
  return {
    session,
    ...names,
    loss: loss.name,
    ...(ofHidden[0] && { hiddenGradient: ofHidden[0].name }),
    gradientOutputs: new Map(reached.map(([name], index) => [name, (sums[index] as Tensor).name])),
  };
}

/** What the layers and the head read, as inputs. */
function declareParameters(
  graph: Graph,
  { model, lora }: AdaptedModel,
  { head, trained }: { readonly head: Head; readonly trained: ReadonlySet<string> },
): ReadonlyMap<string, Tensor> {
  const all = [...parameterShapes(model), ...(lora ? adapterShapes(model, lora) : [])];
  const shapes = [...all.filter(([name]) => name.startsWith("model.layers.")), ...head.parameters];
  return new Map(
    shapes.map(([name, shape]) => [
      name,
      trained.has(name) ? graph.parameter(name, shape) : graph.input(name, shape),
    ]),
  );
}

function buildLayers(
  graph: Graph,
  adapted: AdaptedModel,
  { hidden, parameters }: { readonly hidden: Tensor; readonly parameters: ReadonlyMap<string, Tensor> },
): Tensor {
  const { model } = adapted;
  const tables = declareTables(graph, model);
  let state = hidden;
  for (let layer = 0; layer < model.layers; layer++) {
    const inLayer = layerParameters(parameters, layer, adapted);
    state = buildLayer(graph, state, { model, ...tables, ...inLayer, keep: (value) => value });
  }
  return state;
}
