/** Our side of the engine benchmark: the protocol of `peers/torch_engine.py`, answered by the embedded engine. */
import { performance } from "node:perf_hooks";
import type { Datum } from "../src/algorithm/datum.ts";
import { EmbeddedEngine } from "../src/engine/embedded-engine.ts";
import type { AdamOptions } from "../src/engine/engine.ts";
import type { LoraOptions } from "../src/engine/lora-options.ts";
import type { ModelOptions } from "../src/engine/model-options.ts";
import type { SamplingWeights } from "../src/engine/weight-quantization.ts";
import { type Random, random } from "../src/shared/random.ts";
import { processorClock } from "../src/training/processor-clock.ts";
import { answerRequests } from "./answer-requests.ts";
import type { Work } from "./engine-cases.ts";
import { idsOnly } from "./ids-only.ts";
import { productRate } from "./matrix-product.ts";

type Request =
  | {
      readonly op: "prepare";
      readonly model: ModelOptions;
      readonly threads: number;
      readonly samplingWeights?: SamplingWeights;
      readonly momentsFolder?: string;
      /** Bytes that training may take, from which the size of a micro-batch follows; absent: 4,096 tokens. */
      readonly memoryBudget?: number;
      /** Trains adapters beside the model at this place rather than all of a fresh one. */
      readonly adapted?: { readonly source: string; readonly lora: LoraOptions };
    }
  | { readonly op: "peak" }
  | { readonly op: "product"; readonly threads: number }
  | Work;

type Prepare = Extract<Request, { op: "prepare" }>;
type Generation = Extract<Work, { tokens: number }>;

const adam: AdamOptions = {
  learningRate: 1e-4,
  beta1: 0.9,
  beta2: 0.999,
  epsilon: 1e-8,
  weightDecay: 0.01,
  maxGradientNorm: 1,
};

let prepared: EmbeddedEngine | undefined;
const chance = random(1, "bench");

async function prepare(request: Prepare): Promise<object> {
  const { model, threads, samplingWeights = "f32", momentsFolder, memoryBudget, adapted } = request;
  const options = {
    threads,
    ...(memoryBudget === undefined
      ? { tokenBudget: 4096 }
      : { memoryBudget, longestSequence: model.contextLength }),
    maxSlots: 64,
    samplingWeights,
    ...(momentsFolder && { momentsFolder }),
  };
  prepared = adapted
    ? await EmbeddedEngine.adapt(adapted.source, { lora: adapted.lora, seed: 1 }, options)
    : await EmbeddedEngine.create(model, { tokenizer: idsOnly(model.vocabularySize), seed: 1 }, options);
  return { parameters: prepared.parameterCount };
}

function engine(): EmbeddedEngine {
  if (!prepared) throw new Error("prepare comes first");
  return prepared;
}

async function train({ batch, length, steps }: Extract<Work, { op: "train" }>): Promise<object> {
  const size = engine().tokenizer.vocabularySize;
  const data = Array.from({ length: batch }, () => randomDatum(chance, length, size));
  const start = performance.now();
  const processorStart = processorClock();
  for (let step = 0; step < steps; step++) {
    await engine().forwardBackward(data, { type: "crossEntropy" });
    await engine().step(adam);
  }
  return {
    seconds: (performance.now() - start) / 1000,
    processorSeconds: (processorClock() - processorStart) / 1000,
    tokens: steps * batch * length,
  };
}

function randomDatum(source: Random, length: number, vocabularySize: number): Datum {
  const ids = Int32Array.from({ length: length + 1 }, () => source.below(vocabularySize));
  const weights = new Float32Array(length).fill(1 / length);
  return { inputs: ids.slice(0, -1), targets: ids.slice(1), weights };
}

async function prefill({ batch, length }: Extract<Work, { op: "prefill" }>): Promise<object> {
  const { seconds } = await generate({ op: "generate", batch, prompt: length, tokens: 1 });
  return { seconds, tokens: batch * length };
}

/** What every token after the first takes: two generations, of all tokens and of one. */
async function decode(work: Generation): Promise<object> {
  const whole = await generate(work);
  const first = await generate({ ...work, tokens: 1 });
  return { seconds: whole.seconds - first.seconds, tokens: whole.tokens - first.tokens };
}

async function generate({
  batch,
  prompt,
  tokens,
  groupSize = 1,
}: Generation): Promise<{ seconds: number; tokens: number }> {
  const size = engine().tokenizer.vocabularySize;
  const prompts = Array.from({ length: Math.ceil(batch / groupSize) }, () =>
    Array.from({ length: prompt }, () => chance.below(size)),
  );
  const contexts = Array.from({ length: batch }, (_, seed) => ({
    text: "",
    tokens: prompts[Math.floor(seed / groupSize)] as number[],
    seed,
  }));
  const sampling = { maxTokens: tokens, temperature: 0, topP: 1, topK: 0, stop: [] };
  const start = performance.now();
  const completions = await engine().policy().complete(contexts, sampling);
  const seconds = (performance.now() - start) / 1000;
  return { seconds, tokens: completions.reduce((sum, { usage }) => sum + usage.completionTokens, 0) };
}

async function answer(request: Request): Promise<object> {
  switch (request.op) {
    case "prepare":
      return await prepare(request);
    case "train":
      return await train(request);
    case "prefill":
      return await prefill(request);
    case "generate":
      return await generate(request);
    case "decode":
      return await decode(request);
    case "product":
      return { rate: await productRate(request.threads) };
    case "peak":
      return { bytes: process.resourceUsage().maxRSS * 1024 };
  }
}

await answerRequests(answer);
