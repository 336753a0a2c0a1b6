/**
 * AdamW (Loshchilov & Hutter, 2019): the gradient's norm, clipping, both moments, bias correction and decoupled decay,
 * parameter by parameter and in place. One loop reads and writes each number once and needs no further memory; as a graph
 * of element-wise operators the same took three times as long and copies of the largest tensors.
 */
import { compileVectorLoop } from "../shared/vector-loop.ts";
import type { AdamOptions } from "./engine.ts";
import type { Moments } from "./moments.ts";
import type { Parameter, ParameterSet } from "./parameters.ts";

/** What the optimiser remembers between steps. */
export interface OptimizerState {
  /** Updates made so far. */
  step: number;
  readonly moments: Moments;
}

/**
 * Updates weights and moments in place and zeroes the gradients; returns the gradient's norm before clipping. Throws
 * `FileError` where moments lie in a file; some weights are updated then.
 */
export async function adamStep(
  { parameters, gradients, state }: Trained,
  options: AdamOptions,
): Promise<number> {
  state.step++;
  const norm = gradientNorm(gradients);
  const scale = clippingScale(norm, options.maxGradientNorm);
  for (const [name, { shape, data }] of parameters) {
    // Decay pulls matrices only: a normalisation's scale has no reason to be small.
    const setting = { ...options, step: state.step, scale, hasDecay: shape.length > 1 };
    const gradient = (gradients.get(name) as Parameter).data;
    await state.moments.change(name, ({ start, ...moments }) => {
      const end = start + moments.first.length;
      const values = { data: data.subarray(start, end), gradient: gradient.subarray(start, end), ...moments };
      updateParameter(values, setting);
    });
  }
  return norm;
}

/** What is trained, all by the same names. */
export interface Trained {
  readonly parameters: ParameterSet;
  readonly gradients: ParameterSet;
  readonly state: OptimizerState;
}

/** Euclidean norm of all gradients together. */
export function gradientNorm(gradients: ParameterSet): number {
  let sum = 0;
  for (const { data } of gradients.values()) sum += sumOfSquares(data);
  return Math.sqrt(sum);
}

/** Four sums at once: one alone would wait for each addition. */
function sumOfSquares(data: Float32Array): number {
  let [a, b, c, d] = [0, 0, 0, 0];
  const end = data.length - (data.length % 4);
  for (let i = 0; i < end; i += 4) {
    a += (data[i] as number) * (data[i] as number);
    b += (data[i + 1] as number) * (data[i + 1] as number);
    c += (data[i + 2] as number) * (data[i + 2] as number);
    d += (data[i + 3] as number) * (data[i + 3] as number);
  }
  for (let i = end; i < data.length; i++) a += (data[i] as number) * (data[i] as number);
  return a + b + c + d;
}

/** min(1, maxNorm / norm); the small number keeps a zero gradient from dividing by zero, as PyTorch does. */
function clippingScale(norm: number, maxNorm: number): number {
  return maxNorm === 0 ? 1 : Math.min(1, maxNorm / (norm + 1e-6));
}

/** One parameter with what belongs to it, all of one length. */
export interface ParameterUpdate {
  readonly data: Float32Array;
  readonly gradient: Float32Array;
  readonly first: Float32Array;
  readonly second: Float32Array;
}

export interface UpdateSetting extends AdamOptions {
  /** Which update it is, from 1. */
  readonly step: number;
  /** What clipping leaves of the gradient, 0 to 1. */
  readonly scale: number;
  readonly hasDecay: boolean;
}

/** Updates one parameter; its gradient is zero afterwards. */
export function updateParameter(update: ParameterUpdate, setting: UpdateSetting): void {
  const { beta1, beta2, epsilon, learningRate, weightDecay, step, scale, hasDecay } = setting;
  updateLoop(
    { ...update },
    {
      beta1,
      beta2,
      epsilon,
      scale,
      complement1: 1 - beta1,
      complement2: 1 - beta2,
      rate: learningRate / (1 - beta1 ** step),
      correction2: 1 / (1 - beta2 ** step),
      decay: hasDecay ? 1 - learningRate * weightDecay : 1,
    },
  );
  update.gradient.fill(0);
}

const updateLoop = compileVectorLoop({
  arrays: ["data", "gradient", "first", "second"],
  scalars: [
    "beta1",
    "beta2",
    "epsilon",
    "scale",
    "complement1",
    "complement2",
    "rate",
    "correction2",
    "decay",
  ],
  assignments: [
    ["gradient", ["gradient", "*", "scale"]],
    ["first", [["first", "*", "beta1"], "+", ["gradient", "*", "complement1"]]],
    ["second", [["second", "*", "beta2"], "+", [["gradient", "*", "gradient"], "*", "complement2"]]],
    [
      "data",
      [
        ["data", "*", "decay"],
        "-",
        [["first", "*", "rate"], "/", [{ sqrt: ["second", "*", "correction2"] }, "+", "epsilon"]],
      ],
    ],
  ],
  results: ["data", "first", "second"],
});
