/**
 * Examinations of this machine: does the model fit into memory, how long will the training take, can the run be
 * written. Time is measured on one full micro-batch and a short decoding, memory is planned from the model's shape.
 */
import type { Datum } from "../../algorithm/datum.ts";
import { findCodec } from "../../environment/codecs.ts";
import { formatDuration } from "../../reporting/progress.ts";
import { companionProblem, planCompanions } from "../../training/companions.ts";
import { engineOptions } from "../../training/engine-options.ts";
import type { Watcher } from "../../training/hub-settings.ts";
import { gigabytes, memoryProblem, planMemory } from "../../training/plan-training.ts";
import { inspectFolder } from "../new-path.ts";
import type { Check, LocalPatient } from "./check.ts";

/** Training, frozen copies and sampling together, and the models beside it, from their shapes. Throws what `planCompanions` throws. */
export async function checkMemory({ recipe, engine }: LocalPatient, watcher: Watcher): Promise<Check> {
  const plan = planMemory(recipe, engine.model);
  const companions = await planCompanions(recipe, watcher);
  const problem = memoryProblem(recipe, plan) ?? companionProblem(plan, companions);
  const others = companions.map(({ part, bytes }) => `, the ${part} ${gigabytes(bytes)} more`).join("");
  const { tokenBudget, keptLayers } = plan.training;
  const again = engine.model.layers - keptLayers;
  const detail = `about ${gigabytes(plan.peak)} for ${(engine.parameterCount / 1e6).toFixed(1)} M parameters${others}, ${gigabytes(plan.available)} available; micro-batches of ${tokenBudget} tokens${again === 0 ? "" : `, ${again} of ${engine.model.layers} layers computed twice`}`;
  if (problem === undefined) return { name: "memory", ok: true, detail };
  return { name: "memory", ok: false, detail, fix: problem };
}

export interface Speed {
  /** Tokens a second through forward and backward. */
  readonly trained: number;
  /** Tokens a second that are sampled. */
  readonly sampled: number;
}

/** Trains nothing: gradients are made and forgotten with the engine. */
export async function measureSpeed({ recipe, engine }: LocalPatient, now: () => number): Promise<Speed> {
  const length = Math.min(engine.contextLength, 256) - 1;
  const batch = Array.from(
    { length: Math.max(1, Math.floor(engine.trainingPlan.tokenBudget / (length + 1))) },
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
export function checkTime(
  { recipe }: Pick<LocalPatient, "recipe">,
  speed: Speed,
  episode: EpisodeSize,
): Check {
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
