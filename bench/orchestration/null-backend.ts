/** Models that compute nothing, and count what they are asked to train on, so that anything trained twice shows. */
import type { Datum } from "../../src/algorithm/datum.ts";
import type { Backend, Sampler, TrainedModel } from "../../src/serving/engine/backend.ts";
import { sha256 } from "../../src/shared/hash.ts";
import { byteTokenizer } from "./byte-tokenizer.ts";

/** What was asked for so far. */
export const seen = { data: 0, duplicates: 0, samples: 0, steps: 0 };

const trained = new Set<string>();
let isCounting = false;

/** From now on data are told apart, which costs more than everything else here. */
export function countData(): void {
  isCounting = true;
}

function note(batch: readonly Datum[]): void {
  if (!isCounting) return;
  for (const { inputs, targets } of batch) {
    const hash = sha256(`${inputs.join()}|${targets.at(-1)}`);
    seen.data++;
    if (trained.has(hash)) seen.duplicates++;
    trained.add(hash);
  }
}

const logprob = -1;
const tokenizer = byteTokenizer();
const rowsOf = (batch: readonly Datum[]): Float32Array[] =>
  batch.map(({ targets }) => new Float32Array(targets.length).fill(logprob));

/** A sampled turn is a search or an answer by the seed, spelt in bytes. */
const sampler: Sampler = {
  sample: async (_, { seeds, maxTokens }) => {
    seen.samples += seeds.length;
    return seeds.map((seed) => {
      const yes = seed % 8 < 4 ? "yes" : "no";
      const text = `<think>${seed}</think>${seed % 4 === 0 ? `<answer>${yes}</answer>` : "<search>a fact</search>"}`;
      const tokens = tokenizer.encode(text).slice(0, maxTokens);
      return { tokens, logprobs: tokens.map(() => logprob), reason: "stop" };
    });
  },
  promptLogprobs: async (prompt) => new Float32Array(prompt.length - 1).fill(logprob),
  topPromptLogprobs: async (prompt) => prompt.slice(1).map(() => []),
  save: async () => undefined,
  rest: async () => undefined,
  close: async () => undefined,
};

const model: TrainedModel = {
  logprobs: async (batch) => rowsOf(batch),
  forwardBackward: async (batch) => {
    note(batch);
    return { loss: 0, logprobs: rowsOf(batch) };
  },
  step: async () => {
    seen.steps++;
    return { gradientNorm: 1 };
  },
  snapshot: async () => sampler,
  save: async () => undefined,
  load: async () => undefined,
  close: async () => undefined,
};

export const nullBackend: Backend = {
  vocabularySize: tokenizer.vocabularySize,
  contextLength: 16_384,
  parameterCount: 1,
  base: sampler,
  create: async () => model,
  open: async () => sampler,
  close: async () => undefined,
};
