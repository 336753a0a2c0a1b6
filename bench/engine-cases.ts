/** The shapes and workloads of the engine benchmark: the quickstart's model and SmolLM2-135M's, with random weights. */
import { type ModelOptions, modelOptionsSchema } from "../src/engine/model-options.ts";
import type { SamplingWeights } from "../src/engine/weight-quantization.ts";

export type Work =
  /** `steps` optimiser updates on `batch` sequences of `length` tokens. */
  | { readonly op: "train"; readonly batch: number; readonly length: number; readonly steps: number }
  /** The log-probabilities of the token after `batch` prompts of `length` tokens, and no more. */
  | { readonly op: "prefill"; readonly batch: number; readonly length: number }
  /** `tokens` greedy tokens after prompts of `prompt` tokens, `batch` sequences at once; `decode` leaves out the first, and with it the prompts. */
  | {
      readonly op: "generate" | "decode";
      readonly batch: number;
      readonly prompt: number;
      readonly tokens: number;
      /** So many sequences have the same prompt, as the rollouts of a group; absent: each has its own. */
      readonly groupSize?: number;
    };

export interface EngineCase {
  readonly name: string;
  readonly about: string;
  readonly model: ModelOptions;
  readonly work: Work;
  /** Of our weights while we sample; the peer's stay f32. */
  readonly precision?: SamplingWeights;
}

const tiny = modelOptionsSchema.parse({
  vocabularySize: 512,
  width: 128,
  layers: 4,
  heads: 4,
  keyValueHeads: 4,
  feedForward: 512,
  contextLength: 384,
});
const smol = modelOptionsSchema.parse({
  vocabularySize: 49152,
  width: 576,
  layers: 30,
  heads: 9,
  keyValueHeads: 3,
  feedForward: 1536,
  contextLength: 512,
  ropeBase: 100_000,
});

/** 64 episodes, in groups with a common prompt. */
const groups = (groupSize: number): Work => ({
  op: "generate",
  batch: 64,
  prompt: 256,
  tokens: 32,
  groupSize,
});
const decoding = (batch: number): Work => ({ op: "decode", batch, prompt: 64, tokens: 64 });
const generation = (batch: number): Work => ({ op: "generate", batch, prompt: 64, tokens: 64 });

export const engineCases: readonly EngineCase[] = [
  {
    name: "train-tiny",
    about: "1.1 M parameters, 8 × 256 tokens, 10 updates a round",
    model: tiny,
    work: { op: "train", batch: 8, length: 256, steps: 10 },
  },
  {
    name: "train-135m",
    about: "SmolLM2-135M's shape, 2 × 512 tokens, 1 update a round",
    model: smol,
    work: { op: "train", batch: 2, length: 512, steps: 1 },
  },
  {
    name: "prefill-135m",
    about: "SmolLM2-135M's shape, 4 prompts of 256 tokens",
    model: smol,
    work: { op: "prefill", batch: 4, length: 256 },
  },
  {
    name: "generate-tiny-32",
    about: "1.1 M parameters, 32 sequences, prompts included",
    model: tiny,
    work: generation(32),
  },
  {
    name: "generate-135m-32",
    about: "SmolLM2-135M's shape, 32 sequences, prompts included",
    model: smol,
    work: generation(32),
  },
  { name: "decode-tiny-16", about: "1.1 M parameters, 16 sequences", model: tiny, work: decoding(16) },
  { name: "decode-tiny-32", about: "1.1 M parameters, 32 sequences", model: tiny, work: decoding(32) },
  {
    name: "groups-tiny-8",
    about: "1.1 M parameters, 8 prompts of 256 tokens, each for 8 sequences",
    model: tiny,
    work: groups(8),
  },
  {
    name: "groups-tiny-1",
    about: "1.1 M parameters, 64 prompts of 256 tokens, one for each sequence",
    model: tiny,
    work: groups(1),
  },
  {
    name: "groups-135m-8",
    about: "SmolLM2-135M's shape, 8 prompts of 256 tokens, each for 8 sequences",
    model: smol,
    work: groups(8),
  },
  {
    name: "groups-135m-1",
    about: "SmolLM2-135M's shape, 64 prompts of 256 tokens, one for each sequence",
    model: smol,
    work: groups(1),
  },
  { name: "decode-135m-1", about: "SmolLM2-135M's shape, one sequence", model: smol, work: decoding(1) },
  { name: "decode-135m-16", about: "SmolLM2-135M's shape, 16 sequences", model: smol, work: decoding(16) },
  { name: "decode-135m-32", about: "SmolLM2-135M's shape, 32 sequences", model: smol, work: decoding(32) },
  ...(["int8", "int4"] as const).flatMap((precision) =>
    [1, 16, 32].map((batch) => ({
      name: `decode-135m-${batch}-${precision}`,
      about: `SmolLM2-135M's shape, sequences: ${batch}, our weights ${precision}`,
      model: smol,
      work: decoding(batch),
      precision,
    })),
  ),
];
