/**
 * Models that have a short name: small enough to be trained on a laptop, and of a supported family. Shapes are those of
 * their `config.json`, so that memory can be told before anything is downloaded.
 */
import type { ModelOptions } from "./model-options.ts";

export interface KnownModel {
  readonly name: string;
  /** `owner/name` on the hub. */
  readonly repository: string;
  readonly revision: string;
  readonly licence: string;
  /** Whether the hub wants the licence accepted before it hands out the files (HF_TOKEN). */
  readonly isGated: boolean;
  readonly model: ModelOptions;
  /** Size of the download in bytes, rounded: weights in bfloat16. */
  readonly downloadBytes: number;
}

const smollm2 = {
  contextLength: 8192,
  vocabularySize: 49_152,
  ropeBase: 100_000,
  rmsEpsilon: 1e-5,
  tieEmbeddings: true,
};
const qwen = { vocabularySize: 151_936, ropeBase: 1_000_000, rmsEpsilon: 1e-6, tieEmbeddings: true };
const apache = { revision: "main", licence: "Apache-2.0", isGated: false };

export const knownModels: readonly KnownModel[] = [
  {
    ...apache,
    name: "smollm2-135m",
    repository: "HuggingFaceTB/SmolLM2-135M-Instruct",
    model: { ...smollm2, layers: 30, width: 576, heads: 9, keyValueHeads: 3, feedForward: 1536 },
    downloadBytes: 269e6,
  },
  {
    ...apache,
    name: "smollm2-360m",
    repository: "HuggingFaceTB/SmolLM2-360M-Instruct",
    model: { ...smollm2, layers: 32, width: 960, heads: 15, keyValueHeads: 5, feedForward: 2560 },
    downloadBytes: 724e6,
  },
  {
    ...apache,
    name: "qwen2.5-0.5b",
    repository: "Qwen/Qwen2.5-0.5B-Instruct",
    model: {
      ...qwen,
      family: "qwen2",
      layers: 24,
      width: 896,
      heads: 14,
      keyValueHeads: 2,
      feedForward: 4864,
      contextLength: 32_768,
    },
    downloadBytes: 988e6,
  },
  {
    ...apache,
    name: "qwen3-0.6b",
    repository: "Qwen/Qwen3-0.6B",
    model: {
      ...qwen,
      family: "qwen3",
      layers: 28,
      width: 1024,
      heads: 16,
      keyValueHeads: 8,
      headSize: 128,
      feedForward: 3072,
      contextLength: 40_960,
    },
    downloadBytes: 1_192e6,
  },
  {
    name: "llama-3.2-1b",
    repository: "meta-llama/Llama-3.2-1B-Instruct",
    revision: "main",
    licence: "Llama 3.2 Community License",
    isGated: true,
    model: {
      layers: 16,
      width: 2048,
      heads: 32,
      keyValueHeads: 8,
      feedForward: 8192,
      vocabularySize: 128_256,
      contextLength: 131_072,
      tieEmbeddings: true,
      ropeBase: 500_000,
      rmsEpsilon: 1e-5,
      ropeScaling: {
        factor: 32,
        lowFrequencyFactor: 1,
        highFrequencyFactor: 4,
        originalContextLength: 8192,
      },
    },
    downloadBytes: 2_472e6,
  },
];

export function findKnownModel(name: string): KnownModel | undefined {
  return knownModels.find((model) => model.name === name.toLowerCase());
}
