/**
 * The losses of `algorithm/loss.ts` inside the graph, for M selected predictions at once: the loss, and its
 * derivative with respect to each log-probability, from which differentiation starts. The same in plain
 * numbers, and the oracle of the tests, is `algorithm/token-loss.ts`.
 */
import { type KlTerm, type Loss, maxLogRatio, type ValueLoss } from "../algorithm/loss.ts";
import type { Graph, Tensor } from "./graph.ts";

/** What the losses read besides the log-probabilities; all (M). */
export interface LossInputs {
  readonly weights: Tensor;
  readonly sampledLogprobs?: Tensor;
  readonly advantages?: Tensor;
  readonly referenceLogprobs?: Tensor;
}

/** Which of the optional inputs a loss reads. */
export function lossInputNames(loss: Loss): readonly (keyof LossInputs)[] {
  if (loss.type === "crossEntropy") return ["weights"];
  const names = ["weights", "sampledLogprobs", "advantages"] as const;
  return loss.type === "ppo" && loss.kl ? [...names, "referenceLogprobs"] : names;
}

/** Declares the inputs that a loss reads. */
export function declareLossInputs(graph: Graph, loss: Loss, count: string): LossInputs {
  const declared = lossInputNames(loss).map((name) => [name, graph.input(name, [count])]);
  return Object.fromEntries(declared) as LossInputs;
}

export interface LossNodes {
  /** The summed loss, a scalar. */
  readonly loss: Tensor;
  /** Its derivative with respect to each log-probability or value (M). */
  readonly derivative: Tensor;
}

/** Adds a loss over log-probabilities (M); see `Loss` for the formulas. */
export function buildLoss(graph: Graph, loss: Loss, logprobs: Tensor, inputs: LossInputs): LossNodes {
  const op = elementwise(graph, logprobs);
  const negativeWeights = op("Neg", inputs.weights);
  const finish = (gain: Tensor, slope: Tensor): LossNodes => ({
    loss: graph.node("ReduceSum", [op("Mul", gain, negativeWeights)], [], { attributes: { keepdims: 0 } }),
    derivative: op("Mul", slope, negativeWeights),
  });
  if (loss.type === "crossEntropy") return { ...finish(logprobs, logprobs), derivative: negativeWeights };
  const logRatio = op("Sub", logprobs, inputs.sampledLogprobs as Tensor);
  const advantages = inputs.advantages as Tensor;
  const ratio = op("Exp", clampLogRatio(graph, logRatio));
  if (loss.type === "cispo") {
    const constant = op("Mul", clip(graph, ratio, loss.low, loss.high), advantages);
    return finish(op("Mul", constant, logprobs), constant);
  }
  if (loss.type === "dro") {
    const pull = op("Mul", logRatio, graph.scalar(loss.beta));
    const half = op("Mul", op("Mul", pull, logRatio), graph.scalar(0.5));
    return finish(op("Sub", op("Mul", advantages, logprobs), half), op("Sub", advantages, pull));
  }
  const gain = op("Mul", ratio, advantages);
  const slope = zeroOutside(graph, gain, logRatio);
  if (loss.type === "importanceSampling") return finish(gain, slope);
  const clippedGain = op("Mul", clip(graph, ratio, 1 - loss.clipLow, 1 + loss.clipHigh), advantages);
  const isUnclipped = op("LessOrEqual", gain, clippedGain);
  const objective = op("Min", gain, clippedGain);
  const objectiveSlope = op("Where", isUnclipped, slope, graph.scalar(0));
  if (!loss.kl) return finish(objective, objectiveSlope);
  const kl = buildKl(graph, loss.kl, logprobs, inputs.referenceLogprobs as Tensor);
  return finish(op("Sub", objective, kl.value), op("Sub", objectiveSlope, kl.slope));
}

/** What a critic's loss reads besides its values; all (M). */
export interface ValueInputs {
  readonly weights: Tensor;
  /** Before the first update of the step. */
  readonly oldValues: Tensor;
  readonly returns: Tensor;
}

/** Adds the loss of a critic over its values (M), and its derivative with respect to each. */
export function buildValueLoss(
  graph: Graph,
  loss: ValueLoss,
  values: Tensor,
  { weights, oldValues, returns }: ValueInputs,
): LossNodes {
  const op = elementwise(graph, values);
  const range = graph.scalar(loss.clip);
  // Not old value plus clipped difference: that sum rounds, and a value within the range must stay itself.
  const clipped = op("Max", op("Sub", oldValues, range), op("Min", op("Add", oldValues, range), values));
  const error = op("Sub", values, returns);
  const clippedError = op("Sub", clipped, returns);
  const square = op("Mul", error, error);
  const clippedSquare = op("Mul", clippedError, clippedError);
  const halved = op("Mul", op("Max", square, clippedSquare), graph.scalar(0.5));
  const slope = op("Where", op("Greater", clippedSquare, square), graph.scalar(0), error);
  return {
    loss: graph.node("ReduceSum", [op("Mul", halved, weights)], [], { attributes: { keepdims: 0 } }),
    derivative: op("Mul", slope, weights),
  };
}

/** coefficient * KL against the reference, and its slope, per token (M). */
function buildKl(
  graph: Graph,
  term: KlTerm,
  logprobs: Tensor,
  reference: Tensor,
): { value: Tensor; slope: Tensor } {
  const op = elementwise(graph, logprobs);
  const coefficient = graph.scalar(term.coefficient);
  if (term.estimator === "k1") {
    return { value: op("Mul", op("Sub", logprobs, reference), coefficient), slope: coefficient };
  }
  const difference = op("Sub", reference, logprobs);
  const clamped = clampLogRatio(graph, difference);
  const excess = op("Sub", op("Exp", clamped), graph.scalar(1));
  return {
    value: op("Mul", op("Sub", excess, clamped), coefficient),
    slope: op("Mul", op("Neg", zeroOutside(graph, excess, difference)), coefficient),
  };
}

function elementwise(graph: Graph, like: Tensor): (operator: string, ...inputs: Tensor[]) => Tensor {
  return (operator, ...inputs) => graph.node(operator, inputs, like.shape);
}

function clip(graph: Graph, x: Tensor, low: number, high: number): Tensor {
  return graph.node("Clip", [x, graph.scalar(low), graph.scalar(high)], x.shape);
}

function clampLogRatio(graph: Graph, logRatio: Tensor): Tensor {
  return clip(graph, logRatio, -maxLogRatio, maxLogRatio);
}

/** `x` where the log ratio lies within its bounds, else 0. */
function zeroOutside(graph: Graph, x: Tensor, logRatio: Tensor): Tensor {
  const op = elementwise(graph, x);
  const isWithin = op("LessOrEqual", op("Abs", logRatio), graph.scalar(maxLogRatio));
  return op("Where", isWithin, x, graph.scalar(0));
}
