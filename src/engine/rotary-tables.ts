/**
 * Cosines and sines of the rotary position embedding (Su et al., 2021), with Llama 3's scaling of the frequencies.
 * Angles are rounded to float32 at each step as in the reference implementations: weights were trained with
 * those very angles, and at positions in the thousands the exact ones differ in the fourth digit.
 */
import { headSize, type ModelOptions, type RopeScaling } from "./model-options.ts";

export interface RotaryValues {
  /** Positions in the tables, at least as many as were asked for. */
  readonly rows: number;
  /** (rows, headDim / 2) */
  readonly cosine: Float32Array;
  readonly sine: Float32Array;
}

const known = new WeakMap<ModelOptions, RotaryValues>();
const leastRows = 256;

/** Tables for positions below `rows`; they grow by doubling and are kept, so that most calls only look them up. */
export function rotaryTables(model: ModelOptions, rows: number): RotaryValues {
  const found = known.get(model);
  if (found !== undefined && found.rows >= rows) return found;
  const count = Math.min(model.contextLength, Math.max(leastRows, 2 ** Math.ceil(Math.log2(rows))));
  const tables = makeTables(rotaryFrequencies(model), Math.max(count, rows));
  known.set(model, tables);
  return tables;
}

function makeTables(frequencies: Float32Array, rows: number): RotaryValues {
  const half = frequencies.length;
  const cosine = new Float32Array(rows * half);
  const sine = new Float32Array(rows * half);
  for (let position = 0; position < rows; position++) {
    for (let pair = 0; pair < half; pair++) {
      const angle = Math.fround(position * (frequencies[pair] as number));
      cosine[position * half + pair] = Math.cos(angle);
      sine[position * half + pair] = Math.sin(angle);
    }
  }
  return { rows, cosine, sine };
}

/** Radians for each token of distance, (headDim / 2). */
export function rotaryFrequencies(model: ModelOptions): Float32Array {
  const size = headSize(model);
  const { ropeBase, ropeScaling } = model;
  return Float32Array.from({ length: size / 2 }, (_, pair) => {
    const frequency = Math.fround(1 / Math.fround(ropeBase ** Math.fround((2 * pair) / size)));
    return ropeScaling === undefined ? frequency : frequency / frequencyDivisor(frequency, ropeScaling);
  });
}

/**
 * By what Llama 3 divides a frequency: `factor` where the wavelength exceeds the old context divided by
 * `lowFrequencyFactor`, 1 where it is below the old context divided by `highFrequencyFactor`; between them the
 * frequency, not the divisor, is blended linearly in (old context / wavelength).
 */
export function frequencyDivisor(frequency: number, scaling: RopeScaling): number {
  const { factor, lowFrequencyFactor, highFrequencyFactor, originalContextLength } = scaling;
  const turns = (originalContextLength * frequency) / (2 * Math.PI);
  if (turns < lowFrequencyFactor) return factor;
  if (turns > highFrequencyFactor) return 1;
  const smooth = (turns - lowFrequencyFactor) / (highFrequencyFactor - lowFrequencyFactor);
  return 1 / ((1 - smooth) / factor + smooth);
}
