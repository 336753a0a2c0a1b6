/**
 * AdamW (Loshchilov & Hutter, 2019): the gradient's norm, clipping, both moments, bias correction and decoupled decay,
 * in place, on all threads where the moments are in memory. One loop reads and writes each number once and needs no
 * further memory; as a graph of element-wise operators the same took three times as long and copies of the largest
 * tensors.
 */
import { type LoopWork, runLoop } from "../shared/loop-threads.ts";
import type { VectorLoop } from "../shared/vector-loop.ts";
import type { AdamOptions } from "./engine.ts";
import type { Moments, MomentsPiece } from "./moments.ts";
import type { Parameter, ParameterSet } from "./parameters.ts";

/** What the optimiser remembers between steps. */
export interface OptimizerState {
  /** Updates made so far. */
  step: number;
  readonly moments: Moments;
}

/**
 * Updates weights and moments in place and zeroes the gradients, with so many threads at most; returns the gradient's norm
 * before clipping. Throws `FileError` where moments lie in a file, and `EngineError` where a thread fails; some weights are
 * updated then.
 */
export async function adamStep(
  { parameters, gradients, state }: Trained,
  options: AdamOptions,
  threads: number,
): Promise<number> {
  state.step++;
  const norm = await gradientNorm(gradients, threads);
  const setting = { ...options, step: state.step, scale: clippingScale(norm, options.maxGradientNorm) };
  const update = (name: string, { start, first, second }: MomentsPiece): ParameterUpdate => {
    const { shape, data } = parameters.get(name) as Parameter;
    const end = start + first.length;
    const gradient = (gradients.get(name) as Parameter).data.subarray(start, end);
    // Decay pulls matrices only: a normalisation's scale has no reason to be small.
    const scalars = updateScalars({ ...setting, hasDecay: shape.length > 1 });
    return { arrays: { data: data.subarray(start, end), gradient, first, second }, scalars };
  };
  const { moments } = state;
  const names = [...parameters.keys()];
  if (moments.inMemory) {
    const updates = names.map((name) => update(name, moments.inMemory?.get(name) as MomentsPiece));
    await runLoop(updateLoop, updates, threads);
  } else {
    for (const name of names)
      await moments.change(name, async (piece) => {
        await runLoop(updateLoop, [update(name, piece)], threads);
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
export async function gradientNorm(gradients: ParameterSet, threads: number): Promise<number> {
  const works = [...gradients.values()].map(({ data }) => ({ arrays: { gradient: data }, scalars: {} }));
  return Math.sqrt(await runLoop(squaresLoop, works, threads));
}

const squaresLoop: VectorLoop<"gradient", never> = {
  arrays: ["gradient"],
  scalars: [],
  assignments: [],
  results: [],
  squares: "gradient",
};

/** min(1, maxNorm / norm); the small number keeps a zero gradient from dividing by zero, as PyTorch does. */
function clippingScale(norm: number, maxNorm: number): number {
  return maxNorm === 0 ? 1 : Math.min(1, maxNorm / (norm + 1e-6));
}

interface UpdateSetting extends AdamOptions {
  /** Which update it is, from 1. */
  readonly step: number;
  /** What clipping leaves of the gradient, 0 to 1. */
  readonly scale: number;
  readonly hasDecay: boolean;
}

function updateScalars(setting: UpdateSetting): ParameterUpdate["scalars"] {
  const { beta1, beta2, epsilon, learningRate, weightDecay, step, scale, hasDecay } = setting;
  return {
    beta1,
    beta2,
    epsilon,
    scale,
    complement1: 1 - beta1,
    complement2: 1 - beta2,
    rate: learningRate / (1 - beta1 ** step),
    correction2: 1 / (1 - beta2 ** step),
    decay: hasDecay ? 1 - learningRate * weightDecay : 1,
    zero: 0,
  };
}

const updateLoop = {
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
    "zero",
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
    ["gradient", "zero"],
  ],
  results: ["data", "gradient", "first", "second"],
} as const satisfies VectorLoop<string, string>;

/** One parameter, or a piece of it, with what belongs to it. */
type ParameterUpdate = LoopWork<(typeof updateLoop.arrays)[number], (typeof updateLoop.scalars)[number]>;
