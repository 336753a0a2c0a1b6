/**
 * Examinations of this machine: does the model fit into memory, how long will the training take, can the run be
 * written. Time is measured on one full micro-batch and a short decoding; the rest is arithmetic, good to a factor
 * of two.
 */
import { totalmem } from "node:os";
import type { Datum } from "../../algorithm/datum.ts";
import type { Recipe } from "../../config/recipe.ts";
import type { Engine } from "../../engine/engine.ts";
import { findCodec } from "../../environment/codecs.ts";
import { formatDuration } from "../../reporting/progress.ts";
import { engineOptions } from "../../training/engine-options.ts";
import { inspectFolder } from "../new-path.ts";
import type { Check, Patient } from "./check.ts";

const gigabyte = 2 ** 30;

/**
 * Weights (4 bytes each parameter), of what is trained gradients, two moments (12 more), a frozen copy for KL (4
 * more) and all of it again for a critic with a trunk of its own, with adapters the copy that is sampled from;
 * activations, logits, cache.
 */
export function checkMemory({ recipe, engine }: Patient): Check {
  const algorithms = recipe.stages.flatMap((stage) =>
    stage.type === "reinforcement" ? [stage.algorithm] : [],
  );
  const referenceBytes = algorithms.some(({ kl }) => kl) ? 4 : 0;
  const criticBytes = algorithms.some((options) => options.type === "ppo" && options.critic.trunk === "own")
    ? 16
    : 0;
  const { parameterCount, trainableParameterCount } = engine;
  const isAdapted = trainableParameterCount < parameterCount;
  const weights =
    parameterCount * (isAdapted ? 8 : 4) + trainableParameterCount * (12 + referenceBytes + criticBytes);
  const bytes = weights + activationBytes(recipe, engine) + runtimeBytes;
  const available = Math.min(totalmem(), process.constrainedMemory() || Number.POSITIVE_INFINITY);
  const detail = `about ${size(bytes)} for ${(engine.parameterCount / 1e6).toFixed(1)} M parameters, ${size(available)} available`;
  if (bytes < 0.9 * available) return { name: "memory", ok: true, detail };
  const fix = "lower engine.tokenBudget, use a smaller model, or a larger machine";
  return { name: "memory", ok: false, detail, fix };
}

/** Node with ONNX Runtime before any model. */
const runtimeBytes = 0.25 * gigabyte;

/** About 40 numbers of the width for each token and layer forward and backward; a checkpoint's shape is guessed from its size. */
function activationBytes(recipe: Recipe, engine: Engine): number {
  const {
    model,
    engine: { tokenBudget },
  } = recipe;
  const width = model.type === "fresh" ? model.width : Math.cbrt(engine.parameterCount / 2);
  const layers = model.type === "fresh" ? model.layers : engine.parameterCount / (12 * width * width);
  const training = 40 * tokenBudget * width * layers + 3 * tokenBudget * engine.tokenizer.vocabularySize;
  const { maxSlots, cacheMemory } = engineOptions(recipe);
  const cache = 4 * 2 * maxSlots * engine.contextLength * width * layers;
  return 4 * training + Math.min(cache, cacheMemory ?? cache);
}

export interface Speed {
  /** Tokens a second through forward and backward. */
  readonly trained: number;
  /** Tokens a second that are sampled. */
  readonly sampled: number;
}

/** Trains nothing: gradients are made and forgotten with the engine. */
export async function measureSpeed({ recipe, engine }: Patient, now: () => number): Promise<Speed> {
  const length = Math.min(engine.contextLength, 256) - 1;
  const batch = Array.from(
    { length: Math.max(1, Math.floor(recipe.engine.tokenBudget / (length + 1))) },
    () => evenDatum(length),
  );
  await engine.forwardBackward(batch, { type: "crossEntropy" });
  const trained =
    (batch.length * length) /
    (await secondsOf(now, () => engine.forwardBackward(batch, { type: "crossEntropy" })));
  const contexts = Array.from({ length: engineOptions(recipe).maxSlots }, (_, seed) => ({
    text: "Question",
    tokens: engine.tokenizer.encode("Question"),
    seed,
  }));
  const options = {
    maxTokens: 16,
    temperature: 1,
    topP: 1,
    topK: 0,
    stop: findCodec(recipe.environment.codec).stopStrings,
  };
  let tokens = 0;
  const seconds = await secondsOf(now, async () => {
    for (const { usage } of await engine.policy().complete(contexts, options))
      tokens += usage.completionTokens;
  });
  return { trained, sampled: tokens / seconds };
}

async function secondsOf(now: () => number, work: () => Promise<unknown>): Promise<number> {
  const started = now();
  await work();
  return Math.max(1e-3, (now() - started) / 1000);
}

function evenDatum(length: number): Datum {
  return {
    inputs: new Int32Array(length).fill(1),
    targets: new Int32Array(length).fill(1),
    weights: new Float32Array(length).fill(1),
  };
}

/** What an episode holds: all tokens, and those the policy writes. */
export interface EpisodeSize {
  readonly tokens: number;
  readonly policyTokens: number;
}

/** Time of the stages; evaluations and checkpoints come on top. */
export function checkTime({ recipe }: Patient, speed: Speed, episode: EpisodeSize): Check {
  let seconds = 0;
  for (const stage of recipe.stages) {
    if (stage.type === "supervised")
      seconds += (stage.steps * stage.batchSize * episode.tokens) / speed.trained;
    else {
      const { type, groupSize, epochs } = stage.algorithm;
      // A critic goes through all tokens as often as the policy does.
      const passes = type === "ppo" ? 2 * epochs : epochs;
      const perEpisode = episode.policyTokens / speed.sampled + (passes * episode.tokens) / speed.trained;
      seconds += stage.steps * stage.questionsPerStep * groupSize * perEpisode;
    }
  }
  const rates = `${speed.trained.toFixed(0)} tokens/s trained, ${speed.sampled.toFixed(0)} tokens/s sampled`;
  return {
    name: "time",
    ok: true,
    detail: `about ${formatDuration(1000 * seconds)} without evaluations (${rates}, episodes of ${episode.tokens.toFixed(0)} tokens)`,
  };
}

/** Can the folder that will hold the run be written? */
export async function checkFolder(folder: string): Promise<Check> {
  const { existing, problem } = await inspectFolder(folder);
  if (problem === undefined) return { name: "folder", ok: true, detail: `${existing} can be written` };
  return { name: "folder", ok: false, detail: problem, fix: "choose another folder for runs" };
}

function size(bytes: number): string {
  return bytes >= gigabyte ? `${(bytes / gigabyte).toFixed(1)} GB` : `${(bytes / 2 ** 20).toFixed(0)} MB`;
}
