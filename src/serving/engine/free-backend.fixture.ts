/**
 * For tests and benchmarks: a backend whose models cost nothing. A model is one number, which each step moves by its learning
 * rate; log-probabilities and sampled tokens follow from it, so that stale weights show.
 */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Datum } from "../../algorithm/datum.ts";
import { datumLoss } from "../../algorithm/token-loss.ts";
import { EngineError } from "../../errors.ts";
import type { Backend, ModelShape, SampledSequence, Sampler, TrainedModel } from "./backend.ts";

export interface FreeBackend extends Backend {
  /** What was done, in order, such as `forwardBackward 2` for two data. */
  readonly log: string[];
  /** Awaited by everything that models and samplers do. */
  before: (what: string) => Promise<void>;
}

export function freeBackend(setting: { readonly vocabularySize?: number } = {}): FreeBackend {
  const { vocabularySize = 100 } = setting;
  const log: string[] = [];
  const enter = async (what: string): Promise<void> => {
    await backend.before(what);
    log.push(what);
  };
  const backend: FreeBackend = {
    vocabularySize,
    contextLength: 64,
    parameterCount: 1,
    base: freeSampler(0, enter),
    log,
    before: async () => undefined,
    create: async ({ rank }) => {
      await enter(`create ${rank}`);
      if (rank > 8) throw new EngineError(`the rank is ${rank}, at most 8 fits`);
      return freeModel(enter);
    },
    open: async (folder) => freeSampler((await readState(folder)).value, enter),
    close: async () => undefined,
  };
  return backend;
}

type Enter = (what: string) => Promise<void>;

function freeModel(enter: Enter): TrainedModel {
  let [value, gradient, steps] = [0, 0, 0];
  return {
    logprobs: async (batch) => {
      await enter(`logprobs ${batch.length}`);
      return batch.map((datum) => logprobsOf(datum, value));
    },
    forwardBackward: async (batch, loss) => {
      await enter(`forwardBackward ${batch.length}`);
      const logprobs = batch.map((datum) => logprobsOf(datum, value));
      const parts = batch.map((datum, index) => datumLoss(loss, datum, logprobs[index] as Float32Array));
      for (const { derivatives } of parts) for (const derivative of derivatives) gradient += derivative;
      return { loss: parts.reduce((sum, part) => sum + part.loss, 0), logprobs };
    },
    step: async ({ learningRate }) => {
      await enter("step");
      const gradientNorm = Math.abs(gradient);
      value += learningRate;
      gradient = 0;
      steps++;
      return { gradientNorm };
    },
    snapshot: async () => freeSampler(value, enter),
    save: async (folder) => writeState(folder, { value, steps }),
    load: async (folder, { optimizer }) => {
      await enter("load");
      const state = await readState(folder);
      value = state.value;
      steps = optimizer ? state.steps : 0;
    },
    close: async () => enter("close"),
  };
}

function freeSampler(value: number, enter: Enter): Sampler {
  return {
    sample: async (prompt, { seeds, maxTokens, stopTokens }, signal) => {
      await enter(`sample ${seeds.length}`);
      signal?.throwIfAborted();
      return seeds.map((seed): SampledSequence => {
        const tokens = Array.from({ length: maxTokens }, (_, i) => (prompt.length + seed + i) % 100);
        const end = tokens.findIndex((token) => stopTokens.includes(token));
        const cut = end < 0 ? tokens : tokens.slice(0, end + 1);
        return { tokens: cut, logprobs: cut.map(() => value - 1), reason: end < 0 ? "length" : "stop" };
      });
    },
    promptLogprobs: async (prompt) => new Float32Array(prompt.length - 1).fill(value - 1),
    topPromptLogprobs: async (prompt, k) =>
      prompt.slice(1).map(() => Array.from({ length: k }, (_, token) => [token, value - 1 - token] as const)),
    save: async (folder) => writeState(folder, { value, steps: 0 }),
    rest: async () => undefined,
    close: async () => enter("close sampler"),
  };
}

function logprobsOf({ targets }: Datum, value: number): Float32Array {
  return Float32Array.from(targets, (target) => value - 1 - target / 100);
}

interface State {
  readonly value: number;
  readonly steps: number;
}

async function writeState(folder: string, state: State): Promise<void> {
  await writeFile(join(folder, "state.json"), JSON.stringify(state));
}

async function readState(folder: string): Promise<State> {
  return JSON.parse(await readFile(join(folder, "state.json"), "utf8")) as State;
}

export const freeShape: ModelShape = {
  rank: 2,
  alpha: 32,
  trainsAttention: true,
  trainsFeedForward: true,
  seed: 1,
};
