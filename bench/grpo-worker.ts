/** Our side of the GRPO benchmark: the protocol of `peers/trl_grpo.py`, answered by the embedded engine. */
import { performance } from "node:perf_hooks";
import type { Datum } from "../src/algorithm/datum.ts";
import { EmbeddedEngine } from "../src/engine/embedded-engine.ts";
import type { ModelOptions } from "../src/engine/model-options.ts";
import type { SamplingWeights } from "../src/engine/weight-quantization.ts";
import type { SamplingOptions } from "../src/rollout/policy.ts";
import { random } from "../src/shared/random.ts";
import { answerRequests } from "./answer-requests.ts";
import type { GrpoWork, TurnPlan } from "./grpo-cases.ts";
import { idsOnly, randomIds } from "./ids-only.ts";

type Request =
  | {
      readonly op: "prepare";
      readonly model: ModelOptions;
      readonly threads: number;
      readonly samplingWeights: SamplingWeights;
    }
  | { readonly op: "peak" }
  | ({ readonly op: "step"; readonly round: number } & GrpoWork);

/** As TRL's defaults: no decay, gradients clipped to 1. */
const adam = {
  learningRate: 1e-6,
  beta1: 0.9,
  beta2: 0.999,
  epsilon: 1e-8,
  weightDecay: 0,
  maxGradientNorm: 1,
};
const loss = { type: "ppo", clipLow: 0.2, clipHigh: 0.2 } as const;

let prepared: EmbeddedEngine | undefined;

function engine(): EmbeddedEngine {
  if (!prepared) throw new Error("prepare comes first");
  return prepared;
}

/** What an episode became: every token, and of those the policy sampled the log-probability. */
interface Episode {
  readonly tokens: number[];
  /** By position; undefined where the policy wrote nothing. */
  readonly logprobs: (number | undefined)[];
}

async function step({ round, prompt, group, rollouts }: Extract<Request, { op: "step" }>): Promise<object> {
  const started = performance.now();
  const episodes = await Promise.all(
    rollouts.map((turns, index) => {
      const chance = random(round, "prompt", Math.floor(index / group));
      const opening = randomIds(chance, prompt, engine().model.vocabularySize);
      return play(opening, turns, index + round * rollouts.length);
    }),
  );
  const sampled = performance.now();
  const trained = episodes.reduce(
    (sum, { logprobs }) => sum + logprobs.filter((value) => value !== undefined).length,
    0,
  );
  const data = episodes.map((episode, index) => toDatum(episode, (index % 2 ? 1 : -1) / trained));
  await engine().forwardBackward(data, loss);
  await engine().step(adam);
  const ended = performance.now();
  return {
    seconds: (ended - started) / 1000,
    sampling: (sampled - started) / 1000,
    update: (ended - sampled) / 1000,
    sampledTokens: trained,
    tokens: episodes.reduce((sum, { tokens }) => sum + tokens.length, 0),
  };
}

/** One episode by itself: the policy gathers those that are under way into batches. */
async function play(opening: number[], turns: readonly TurnPlan[], seed: number): Promise<Episode> {
  const { vocabularySize } = engine().model;
  const chance = random(seed, "observations");
  const tokens = [...opening];
  const logprobs: (number | undefined)[] = opening.map(() => undefined);
  for (const { completion, observation } of turns) {
    const options: SamplingOptions = { maxTokens: completion, temperature: 1, topP: 1, topK: 0, stop: [] };
    const context = { text: "", tokens: [...tokens], episode: `${seed}`, seed };
    const [answer] = await engine().policy().complete([context], options);
    tokens.push(...(answer?.tokens ?? []), ...randomIds(chance, observation, vocabularySize));
    logprobs.push(...(answer?.logprobs ?? []));
    for (let i = 0; i < observation; i++) logprobs.push(undefined);
  }
  return { tokens, logprobs };
}

/** Weight 1 over the number of trained tokens, as in the loss of DAPO that TRL takes by default; the sign stands for the advantage. */
function toDatum({ tokens, logprobs }: Episode, advantage: number): Datum {
  const targets = logprobs.slice(1);
  const weight = Math.abs(advantage);
  return {
    inputs: Int32Array.from(tokens.slice(0, -1)),
    targets: Int32Array.from(tokens.slice(1)),
    weights: Float32Array.from(targets, (value) => (value === undefined ? 0 : weight)),
    logprobs: Float32Array.from(targets, (value) => value ?? 0),
    advantages: Float32Array.from(targets, (value) => (value === undefined ? 0 : Math.sign(advantage))),
  };
}

async function answer(request: Request): Promise<object> {
  switch (request.op) {
    case "prepare": {
      const setting = { tokenizer: idsOnly(request.model.vocabularySize), seed: 1 };
      const { threads, samplingWeights } = request;
      const options = { threads, samplingWeights, maxSlots: 64 };
      prepared = await EmbeddedEngine.create(request.model, setting, options);
      return { parameters: prepared.parameterCount };
    }
    case "step":
      return await step(request);
    case "peak":
      return { bytes: process.resourceUsage().maxRSS * 1024 };
  }
}

await answerRequests(answer);
