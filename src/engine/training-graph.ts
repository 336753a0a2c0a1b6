/**
 * The two graphs over whole sequences: log-probabilities of targets, and the gradient of a loss over them. Only
 * the M selected predictions (those with a weight) pass through the output layer. Gradients are added to
 * accumulators that are fed and written back in place, so that micro-batches add up without another pass.
 */
import type { Datum } from "../algorithm/datum.ts";
import type { Loss } from "../algorithm/loss.ts";
import { assert } from "../errors.ts";
import { buildDecoder, causalMask, declareParameters, outputWeight, parameter } from "./decoder-graph.ts";
import { differentiate } from "./differentiate.ts";
import { Graph, type Tensor } from "./graph.ts";
import { type AdaptedModel, trainableNames } from "./lora.ts";
import { buildLoss, declareLossInputs, type LossInputs, lossInputNames } from "./loss-graph.ts";
import { headSize, type ModelOptions } from "./model-options.ts";
import { gatherRows, linear, logSoftmaxAt } from "./operators.ts";
import { rotaryTables } from "./rotary-tables.ts";
import { type Feed, Session, type SessionOptions } from "./session.ts";

const selectedCount = "M";
/** Prefix of the accumulators' names; an output is named by `SequenceGraph.gradientOutputs`. */
export const accumulatorPrefix = "accumulator.";

export interface SequenceGraph {
  readonly session: Session;
  readonly logprobs: string;
  /** The summed loss; absent from a graph without a loss. */
  readonly loss?: string;
  /** By name of a trainable parameter: the output that holds accumulator plus gradient. */
  readonly gradientOutputs: ReadonlyMap<string, string>;
}

/** Builds the graph for batches of any size; with a loss it also differentiates it with respect to what is trained. */
export async function createSequenceGraph(
  adapted: AdaptedModel,
  options: SessionOptions & { readonly loss?: Loss },
): Promise<SequenceGraph> {
  const graph = new Graph();
  const names = options.loss ? [...trainableNames(adapted)] : [];
  const parameters = declareParameters(graph, adapted, new Set(names));
  const hidden = buildDecoder(graph, adapted, parameters);
  const selected = gatherRows(graph, hidden, graph.input("selected", [selectedCount], "int64"));
  const logits = linear(graph, selected, outputWeight(parameters));
  const logprobs = logSoftmaxAt(graph, logits, graph.input("targets", [selectedCount], "int64"));
  if (!options.loss) {
    const session = await Session.create(graph, [logprobs], options);
    return { session, logprobs: logprobs.name, gradientOutputs: new Map() };
  }
  const inputs = declareLossInputs(graph, options.loss, selectedCount);
  const { loss, derivative } = buildLoss(graph, options.loss, logprobs, inputs);
  const trainable = names.map((name) => parameter(parameters, name));
  const gradients = differentiate(graph, { output: logprobs, gradient: derivative }, trainable);
  const sums = gradients.map((gradient, index) => accumulate(graph, names[index] as string, gradient));
  const session = await Session.create(graph, [loss, logprobs, ...sums], options);
  const gradientOutputs = new Map(names.map((name, index) => [name, (sums[index] as Tensor).name]));
  return { session, logprobs: logprobs.name, loss: loss.name, gradientOutputs };
}

function accumulate(graph: Graph, name: string, gradient: Tensor): Tensor {
  const accumulator = graph.input(accumulatorPrefix + name, gradient.shape);
  return graph.node("Add", [accumulator, gradient], gradient.shape);
}

/** Where the selected predictions of a micro-batch came from, to bring their log-probabilities home. */
export interface Selection {
  readonly feeds: ReadonlyMap<string, Feed>;
  /** For each selected prediction: index of its datum within the members, and its position t. */
  readonly rows: Int32Array;
  readonly times: Int32Array;
}

/** The feeds of a micro-batch whose longest sequence has `time` tokens. Without a loss every target is selected, with one those of non-zero weight. */
export function sequenceFeeds(
  data: readonly Datum[],
  time: number,
  setting: { readonly model: ModelOptions; readonly loss?: Loss },
): Selection {
  const batch = data.length;
  const { model, loss } = setting;
  const tokens = new BigInt64Array(batch * time);
  const rows: number[] = [];
  const times: number[] = [];
  for (const [row, datum] of data.entries()) {
    assert(datum.inputs.length <= time, `a sequence of ${datum.inputs.length} tokens in a batch of ${time}`);
    for (let t = 0; t < datum.inputs.length; t++) {
      tokens[row * time + t] = BigInt(datum.inputs[t] as number);
      if (loss && datum.weights[t] === 0) continue;
      rows.push(row);
      times.push(t);
    }
  }
  const pick = (read: (datum: Datum, t: number) => number): number[] =>
    rows.map((row, index) => read(data[row] as Datum, times[index] as number));
  const selected = rows.map((row, index) => row * time + (times[index] as number));
  const feeds = new Map<string, Feed>([
    ["tokens", { data: tokens, shape: [batch * time] }],
    ["selected", { data: BigInt64Array.from(selected, BigInt), shape: [rows.length] }],
    ["targets", integerFeed(pick((datum, t) => datum.targets[t] as number))],
    ...constantFeeds(model, { batch, time }),
    ...(loss ? lossFeeds(loss, pick) : []),
  ]);
  return { feeds, rows: Int32Array.from(rows), times: Int32Array.from(times) };
}

function lossFeeds(
  loss: Loss,
  pick: (read: (datum: Datum, t: number) => number) => number[],
): [string, Feed][] {
  const readers: Record<keyof LossInputs, (datum: Datum, t: number) => number> = {
    weights: (datum, t) => datum.weights[t] as number,
    sampledLogprobs: (datum, t) => required(datum.logprobs, loss, "logprobs")[t] as number,
    advantages: (datum, t) => required(datum.advantages, loss, "advantages")[t] as number,
    referenceLogprobs: (datum, t) =>
      required(datum.referenceLogprobs, loss, "referenceLogprobs")[t] as number,
  };
  return lossInputNames(loss).map((name) => {
    const values = Float32Array.from(pick(readers[name]));
    return [name, { data: values, shape: [values.length] }];
  });
}

function required(values: Float32Array | undefined, loss: Loss, name: string): Float32Array {
  assert(values, `the loss ${loss.type} needs ${name} in every datum`);
  return values;
}

function integerFeed(values: readonly number[]): Feed {
  return { data: BigInt64Array.from(values, BigInt), shape: [values.length] };
}

/** Positions, rotary tables and causal mask depend on the shape alone. */
function constantFeeds(
  model: ModelOptions,
  { batch, time }: { readonly batch: number; readonly time: number },
): [string, Feed][] {
  const half = headSize(model) / 2;
  const { cosine, sine } = rotaryTables(model, time);
  const table = (data: Float32Array): Feed => ({ data: data.subarray(0, time * half), shape: [time, half] });
  const groupSize = model.heads / model.keyValueHeads;
  const positions = BigInt64Array.from({ length: batch * time }, (_, index) => BigInt(index % time));
  return [
    ["positions", { data: positions, shape: [batch, time] }],
    ["cosine", table(cosine)],
    ["sine", table(sine)],
    ["negatedSine", { data: sine.subarray(0, time * half).map((value) => -value), shape: [time, half] }],
    ["mask", { data: causalMask(time, groupSize), shape: [groupSize * time, time] }],
  ];
}
