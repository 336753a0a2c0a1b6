/** A tiny model with a byte-pair tokenizer of its own, for the tests of this room; and data for it. */
import type { Datum } from "../algorithm/datum.ts";
import { type Random, random } from "../shared/random.ts";
import type { BytePairTokenizer } from "../tokenizer/byte-pair.ts";
import { trainBytePair } from "../tokenizer/byte-pair-training.ts";
import { EmbeddedEngine, type EmbeddedEngineOptions } from "./embedded-engine.ts";
import type { AdamOptions } from "./engine.ts";
import type { ModelOptions } from "./model-options.ts";

const lines = [
  "The river Vltava is the longest river of the country and flows through its capital.",
  "The capital of the country lies on the river; the river flows north.",
  "Which river flows through the capital? The longest river of the country.",
];

export const tinyTokenizer: BytePairTokenizer = trainBytePair(lines, {
  vocabularySize: 300,
  specialTokens: [],
});

export const tinyModel: ModelOptions = {
  layers: 2,
  width: 16,
  heads: 4,
  keyValueHeads: 2,
  feedForward: 24,
  vocabularySize: tinyTokenizer.vocabularySize,
  contextLength: 640,
  tieEmbeddings: false,
  ropeBase: 10_000,
  rmsEpsilon: 1e-5,
};

/** A step that changes weights visibly. */
export const adam: AdamOptions = {
  learningRate: 0.02,
  beta1: 0.9,
  beta2: 0.95,
  epsilon: 1e-8,
  weightDecay: 0,
  maxGradientNorm: 0,
};

/** A fresh engine; `model` and `options` replace parts of what is usual here. */
export async function tinyEngine(
  setting: {
    readonly model?: Partial<ModelOptions>;
    readonly options?: Partial<EmbeddedEngineOptions>;
    readonly seed?: number;
  } = {},
): Promise<EmbeddedEngine> {
  return await EmbeddedEngine.create(
    { ...tinyModel, ...setting.model },
    { tokenizer: tinyTokenizer, seed: setting.seed ?? 1 },
    { threads: 1, tokenBudget: 256, maxSlots: 4, ...setting.options },
  );
}

/** `count` ids that the tokenizer can decode. */
export function randomTokens(count: number, chance: Random): number[] {
  return Array.from({ length: count }, () => chance.below(tinyTokenizer.vocabularySize));
}

/** A sequence of random tokens; every third prediction has no weight. */
export function randomDatum(length: number, seed: number): Datum {
  const chance = random(seed, "datum");
  const tokens = randomTokens(length + 1, chance);
  return {
    inputs: Int32Array.from(tokens.slice(0, -1)),
    targets: Int32Array.from(tokens.slice(1)),
    weights: Float32Array.from({ length }, (_, t) => (t % 3 === 0 ? 0 : 0.25 + chance.next())),
  };
}
